/**
 * `@kontinuum/kapi`: an embeddable Kubernetes-style API server. Knows no machines and no clusters.
 */
export * from "./contract.ts";
export { parseTokenFile, staticTokens, type StaticToken } from "./auth/authenticators.ts";
export { createServer } from "./server.ts";
export {
  CelBudgetError,
  CelCompileError,
  CelError,
  celFunction,
  CelUint,
  compileCel,
  EntryMap as CelEntryMap,
  defaultBudget as defaultCelBudget,
  fromJson as celFromJson,
  FunctionTable as CelFunctionTable,
  languageFunctions as celLanguageFunctions,
  listOf as celListOf,
  mapOf as celMapOf,
  optionalFunctions as celOptionalFunctions,
  optionalOf as celOptionalOf,
  Meter as CelMeter,
  toJson as celToJson,
  types as celTypes,
  type CelDeclarations,
  type ObjectField as CelObjectField,
  type CelProgram,
  type CelType,
  type CelValue,
} from "./cel/index.ts";
export { compileCrd } from "./crd/index.ts";
export { duplicateFields } from "./json/duplicates.ts";
export { cloneJson, equalJson, measure as measureJson, parseJson } from "./json/json.ts";
export { builtinResources } from "./kinds/index.ts";
export { decodeManagedFields } from "./patch/managed-fields.ts";
export { metadataErrors, normalizeMetadata } from "./registry/metadata.ts";
export type { FieldError, ResourceDefinition } from "./resource.ts";

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
  compileCel,
  defaultBudget as defaultCelBudget,
  fromJson as celFromJson,
  listOf as celListOf,
  mapOf as celMapOf,
  Meter as CelMeter,
  toJson as celToJson,
  types as celTypes,
  type CelDeclarations,
  type CelProgram,
  type CelType,
  type CelValue,
} from "./cel/index.ts";

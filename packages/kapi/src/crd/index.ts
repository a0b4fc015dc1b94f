/**
 * Custom resources: definitions validated (`validateCrd`) and compiled into served resources (`compileCrd`).
 */
export { compileCrd, crdNames, crdVersions, type CrdConversion, type CrdNames } from "./compile-crd.ts";
export type { ConversionCall } from "./conversion.ts";
export { validateCrd } from "./validate-crd.ts";

/**
 * Custom resources: definitions validated (`validateCrd`) and compiled into served resources (`compileCrd`).
 */
export { compileCrd, crdNames, crdVersions, type CrdConversion, type CrdNames } from "./compile-crd.ts";
export { convertByVersionOnly, type ConversionCall } from "./conversion.ts";
export { humanDuration } from "./human-duration.ts";
export { compileJsonPath, JsonPathError, simplePath, type JsonPath } from "./json-path.ts";
export { validateCrd } from "./validate-crd.ts";

/**
 * OpenAPI documents of the served resources, v3 and v2.
 */
export { openapiV2Document } from "./v2.ts";
export { openapiV3Document, openapiV3VersionDocument } from "./v3.ts";

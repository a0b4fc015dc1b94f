/**
 * OpenAPI documents of the served resources, v3 and v2.
 */
export { openapiV2Document } from "./v2.ts";
export { encodeOpenapiV2, openapiV2ProtobufType } from "./v2-protobuf.ts";
export { openapiV3Document, openapiV3VersionDocument } from "./v3.ts";

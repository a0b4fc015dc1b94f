/**
 * The protobuf form of built-in kinds: bodies, answers and watch frames, driven by the published types.
 */
export {
  decodeProtobuf,
  encodeProtobuf,
  encodeProtobufList,
  encodeWatchFrame,
  protobufMediaType,
} from "./envelope.ts";

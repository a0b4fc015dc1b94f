/**
 * The protobuf form of built-in kinds: bodies, answers and watch frames, driven by the published types.
 */
export {
  decodeProtobuf,
  encodeProtobuf,
  encodeWatchFrame,
  hasProtobufMagic,
  protobufMediaType,
} from "./envelope.ts";

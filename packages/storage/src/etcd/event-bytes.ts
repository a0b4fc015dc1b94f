/**
 * Events as bytes, made once for all watches that an event goes to.
 *
 * A response carries them as fields that its schema need not look into (protobuf's unknown fields): on the wire they are what
 * the events themselves would be (field 11 of `WatchResponse`, in etcd's public `rpc.proto`).
 */
import { toBinary, type UnknownField } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { StoreEvent } from "../contract.ts";
import { EventSchema } from "../gen/etcd/mvccpb/kv_pb.ts";
import { eventMessage } from "./messages.ts";

/** The field of a watch response that holds events. */
const eventsField = 11;

/** By what watches share: the event where it has a previous pair, else its pair. */
const made = new WeakMap<object, UnknownField>();

/** An event as a field of a watch response. */
export function eventField(event: StoreEvent): UnknownField {
  const shared = event.prev ? event : event.kv;
  const present = made.get(shared);
  if (present) return present;
  const bytes = toBinary(EventSchema, eventMessage(event));
  const data = new BinaryWriter().bytes(bytes).finish();
  const field: UnknownField = { no: eventsField, wireType: WireType.LengthDelimited, data };
  made.set(shared, field);
  return field;
}

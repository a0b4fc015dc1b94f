/**
 * What a handler knows beyond its request: which node it speaks for, and who asks.
 *
 * All nodes of a rack share one set of handlers; the node travels in the context values of the call, so
 * that forwarding a call to another node is running the same handler with another node in them.
 */
import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import { unavailable } from "../call-error.ts";
import type { SimulatedNode } from "../node.ts";

/** Who asks, and how. */
export interface Caller {
  readonly node: SimulatedNode;
  readonly roles: readonly string[];
  /** The connection is one of maintenance mode. */
  readonly isMaintenance: boolean;
}

/** Key of the caller in a call's context values. */
export const callerKey = createContextKey<Caller | undefined>(undefined, { description: "caller" });

/** The caller of a call. */
export function callerOf(context: HandlerContext): Caller {
  const caller = context.values.get(callerKey);
  if (!caller) throw unavailable("this connection belongs to no node");
  return caller;
}

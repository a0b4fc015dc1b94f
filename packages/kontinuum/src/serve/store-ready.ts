/**
 * Waiting for a remote store to answer, with a reason when it never will.
 *
 * A server that comes up together with its store must not fail because it was faster; one that is refused
 * must not wait for something that will not change.
 */
import { CodedError, isCoded, messageOf, type Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage";

/** How long to wait, and how often to ask, milliseconds. */
const storeReady = { timeoutMs: 30_000, retryMs: 500 } as const;

/** Node's names for a certificate that is not trusted. */
const distrust = /^(SELF_SIGNED_|UNABLE_TO_|DEPTH_ZERO_|CERT_|ERR_TLS_CERT_)/;

/** Longest chain of causes that is looked at. */
const maxDepth = 8;

/** Resolves when the store answers. Fails with the refusal, or with `unavailable` after the time. `name` is for people. */
export async function whenStoreReady(
  store: Store,
  name: string,
  edges: Edges,
  timeoutMs: number = storeReady.timeoutMs,
): Promise<void> {
  const until = edges.clock.monotonic() + timeoutMs;
  for (;;) {
    try {
      await store.range({ key: "health-check", limit: 1 });
      return;
    } catch (error) {
      if (isDistrust(error)) {
        throw new CodedError(
          "failed_precondition",
          `the certificate of ${name} is not trusted: name its authority in KONTINUUM_SERVER_GRPC_CA_FILE`,
          { cause: error },
        );
      }
      if (isCoded(error, "unauthenticated") || isCoded(error, "permission_denied")) throw error;
      if (edges.clock.monotonic() >= until) {
        throw new CodedError(
          "unavailable",
          `${name} is not ready after ${timeoutMs / 1000} s: ${messageOf(error)}`,
          {
            cause: error,
          },
        );
      }
    }
    await edges.clock.sleep(storeReady.retryMs);
  }
}

function isDistrust(error: unknown): boolean {
  let current = error;
  for (let depth = 0; depth < maxDepth && current instanceof Error; depth++) {
    if ("code" in current && typeof current.code === "string" && distrust.test(current.code)) return true;
    current = current.cause;
  }
  return false;
}

/**
 * One call: its deadline, the node it is routed to, and its failure in our terms.
 *
 * The deadline runs on the injected clock and is told to the node too (`grpc-timeout`), so that it
 * stops work nobody waits for. A request routed with `node` metadata is answered by that node
 * through the one that was dialled (Talos API, request proxying).
 */
import { Code, ConnectError, type CallOptions as WireOptions } from "@connectrpc/connect";
import type { Edges } from "@kontinuum/std";
import type { GrpcSession } from "./grpc-session.ts";
import { talosErrorOf, TalosError } from "./talos-error.ts";

/** Deadline of a call that states none, in milliseconds. */
export const defaultTimeoutMs = 30_000;

/** What every call takes. */
export interface CallOptions {
  /** Gives up after so many milliseconds. Default {@link defaultTimeoutMs}. */
  readonly timeoutMs?: number;
  /** Address or host name of the node that shall answer, reached through the dialled one. */
  readonly node?: string;
  readonly signal?: AbortSignal;
}

/** Runs calls over one session. */
export class Caller {
  readonly #session: GrpcSession;
  readonly #edges: Pick<Edges, "clock">;
  readonly #target: string;
  readonly #node: string | undefined;

  constructor(session: GrpcSession, edges: Pick<Edges, "clock">, target: string, node: string | undefined) {
    this.#session = session;
    this.#edges = edges;
    this.#target = target;
    this.#node = node;
  }

  /** Runs a call with one answer. */
  async unary<T>(method: string, options: CallOptions, call: (wire: WireOptions) => Promise<T>): Promise<T> {
    const run = this.#start(method, options);
    try {
      // Not everything below can be ended half-way (a handshake can't): the caller is not kept waiting for it.
      return await Promise.race([call(run.wire), run.aborted]);
    } catch (error) {
      throw await run.failure(error);
    } finally {
      run.end();
    }
  }

  /**
   * Runs a call with a stream of answers. Leaving the loop early ends the call. With `untilFirst`
   * the deadline covers only the wait for the first message: for watches, which have no end.
   */
  async *stream<T>(
    method: string,
    options: CallOptions & { readonly untilFirst?: boolean },
    call: (wire: WireOptions) => AsyncIterable<T>,
  ): AsyncGenerator<T, void, undefined> {
    const run = this.#start(method, options);
    const messages = call(run.wire)[Symbol.asyncIterator]();
    try {
      for (;;) {
        // As above: a connection that is torn down may leave the stream below waiting for ever.
        const next = await Promise.race([messages.next(), run.aborted]);
        if (next.done === true) return;
        if (options.untilFirst) run.disarm();
        yield next.value;
      }
    } catch (error) {
      throw await run.failure(error);
    } finally {
      run.end();
      void messages.return?.()?.catch(() => {});
    }
  }

  #start(method: string, options: CallOptions & { readonly untilFirst?: boolean }) {
    const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
    const node = options.node ?? this.#node;
    const target = node === undefined ? this.#target : `${node} through ${this.#target}`;
    const abort = new AbortController();
    let expired = false;
    const timer = this.#edges.clock.timer(timeoutMs, () => {
      expired = true;
      abort.abort();
    });
    const onAbort = (): void => abort.abort(options.signal?.reason);
    if (options.signal?.aborted) onAbort();
    options.signal?.addEventListener("abort", onAbort, { once: true });
    const aborted = new Promise<never>((_, reject) => {
      const end = (): void => reject(new ConnectError("cancelled", Code.Canceled));
      abort.signal.addEventListener("abort", end, { once: true });
    });
    aborted.catch(() => {});
    const headers: Record<string, string> = {};
    if (node !== undefined) headers["node"] = node;
    if (!options.untilFirst) headers["grpc-timeout"] = `${Math.min(Math.ceil(timeoutMs), 99_999_999)}m`;
    return {
      aborted,
      wire: { signal: abort.signal, headers } satisfies WireOptions,
      disarm: () => timer.clear(),
      failure: async (error: unknown): Promise<TalosError> => {
        // A stream that dies with its connection looks cancelled to gRPC.
        const lost = !abort.signal.aborted && (await this.#session.lost());
        return talosErrorOf(error, {
          target,
          method,
          timeoutMs,
          expired,
          lost,
          connectionFailure: this.#session.failure,
        });
      },
      end: () => {
        timer.clear();
        options.signal?.removeEventListener("abort", onAbort);
        abort.abort();
      },
    };
  }
}

/** The single reply of a call that was not fanned out. Fails when the node sent none or an error. */
export function onlyReply<T extends { metadata?: { error: string } | undefined }>(
  method: string,
  messages: readonly T[],
): T {
  const first = messages[0];
  if (!first) throw new TalosError("protocol", `${method}: the node sent an empty reply`);
  if (first.metadata?.error) throw new TalosError("failed", `${method}: ${first.metadata.error}`);
  return first;
}

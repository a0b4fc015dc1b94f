/**
 * Clients whose operations are recorded, and a watcher that never starts over: what kill -9 rounds and network
 * faults are tried with.
 */
import { isCoded, type Random } from "@kontinuum/std";
import { prefixRange, type Store, type StoreEvent } from "@kontinuum/storage";
import type { History } from "@kontinuum/storage/history";

const keysPerClient = 4;

/** Writes and reads a few keys until the store is gone. */
export async function recordedClient(
  store: Store,
  history: History,
  id: number,
  random: Random,
  signal: AbortSignal,
  unique: () => string,
): Promise<void> {
  while (!signal.aborted) {
    // Half of the keys are shared by all clients.
    const key = `/crash/${random.integer(2) === 0 ? "shared" : id}/${random.integer(keysPerClient)}`;
    const started = history.begin(
      random.integer(4) === 0 ? { kind: "read", key } : { kind: "write", key, value: unique() },
    );
    try {
      if (started.kind === "read") {
        const found = await store.range({ key });
        history.end(started, found.revision, found.kvs[0]?.value.toString());
      } else {
        const { revision } = await store.txn({ success: [{ type: "put", key, value: started.value ?? "" }] });
        history.end(started, revision);
      }
    } catch (error) {
      if (started.kind === "read") history.nothing(started);
      if (!isCoded(error)) throw error;
      // Lost: the outcome is unknown, and stays in the history as such.
      if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}

/** Follows everything from where the last round's watch stopped. */
export async function collect(store: Store, events: StoreEvent[], signal: AbortSignal): Promise<void> {
  const watch = store.watch({
    ...prefixRange("/crash/"),
    startRevision: (events.at(-1)?.kv.modRevision ?? 0) + 1,
    signal,
  });
  try {
    for await (const batch of watch) events.push(...batch.events);
  } catch (error) {
    if (!isCoded(error)) throw error;
  }
}

/**
 * What clients saw, and whether one store could have answered so: linearizability with revisions as the
 * witness, and the oracle for watches. Test code only.
 *
 * Every change is given by a watch from the beginning (or by the clients' own answers); revisions give
 * the order. Checked is that this order respects real time, that every acknowledged write is in it
 * exactly once, that nothing is in it that nobody wrote, and that every read saw the state of its
 * revision.
 */
import type { StoreEvent } from "../contract.ts";

/** An operation on one key that a client began. */
export interface Started {
  readonly kind: "write" | "read";
  readonly key: string;
  /** Of a write: unique over the whole history; `undefined` for a delete. */
  readonly value?: string | undefined;
  readonly invoked: number;
}

interface Finished extends Started {
  readonly completed: number;
  /** Of a write: its revision. Of a read: the store's revision when it was answered. */
  readonly revision: number;
  /** Of a read. */
  readonly seen?: string | undefined;
}

/** Records operations of concurrent clients. Times are turns of a counter: only their order matters. */
export class History {
  #turn = 0;
  readonly finished: Finished[] = [];
  /** Writes whose outcome nobody was told. */
  readonly open = new Set<Started>();

  /** A client begins. */
  begin(operation: Omit<Started, "invoked">): Started {
    const started = { ...operation, invoked: this.#turn++ };
    this.open.add(started);
    return started;
  }

  /** The store acknowledged, at `revision`; `seen` is what a read answered. */
  end(started: Started, revision: number, seen?: string): void {
    this.open.delete(started);
    this.finished.push({ ...started, completed: this.#turn++, revision, seen });
  }

  /** It is known that nothing happened. */
  nothing(started: Started): void {
    this.open.delete(started);
  }
}

/** Violations that {@link checkHistory} names before it stops. */
const maxViolations = 20;

/**
 * Checks a history against all changes in the order of delivery. `contiguous`: nobody else wrote, so
 * revisions from the first event on have no gaps.
 */
export function checkHistory(
  history: History,
  events: readonly StoreEvent[],
  options: { readonly contiguous?: boolean } = {},
): string[] {
  const violations: string[] = [];
  const report = (text: string): void => {
    if (violations.length < maxViolations) violations.push(text);
  };
  checkDelivery(events, options.contiguous === true, report);

  const changes = new Map<string, { revision: number; value: string | undefined }[]>();
  const byValue = new Map<string, number>();
  for (const { type, kv } of events) {
    const key = kv.key.toString();
    const value = type === "put" ? kv.value.toString() : undefined;
    const list = changes.get(key) ?? [];
    changes.set(key, list);
    list.push({ revision: kv.modRevision, value });
    if (value === undefined) continue;
    if (byValue.has(value))
      report(`value ${value} was written twice, at ${byValue.get(value)} and ${kv.modRevision}`);
    byValue.set(value, kv.modRevision);
  }

  const written = new Map<string, Started>();
  for (const operation of [...history.finished, ...history.open])
    if (operation.kind === "write" && operation.value !== undefined) written.set(operation.value, operation);
  for (const value of byValue.keys())
    if (!written.has(value)) report(`value ${value} was never written by anybody`);

  const stateAt = (key: string, revision: number): string | undefined => {
    const list = changes.get(key) ?? [];
    let found: string | undefined;
    for (const change of list) if (change.revision <= revision) found = change.value;
    return found;
  };
  for (const operation of history.finished) {
    if (operation.kind === "read") {
      const expected = stateAt(operation.key, operation.revision);
      if (expected !== operation.seen)
        report(
          `a read of ${operation.key} at ${operation.revision} saw ${operation.seen}, it was ${expected}`,
        );
    } else if (operation.value !== undefined && byValue.get(operation.value) !== operation.revision)
      report(
        `acknowledged value ${operation.value} of ${operation.key} should be at ${operation.revision} but is at ${byValue.get(operation.value) ?? "no revision"}`,
      );
  }
  checkRealTime(history, byValue, report);
  return violations;
}

/** Each event once, in order, whole. */
function checkDelivery(
  events: readonly StoreEvent[],
  contiguous: boolean,
  report: (text: string) => void,
): void {
  let last = 0;
  let keys = new Set<string>();
  for (const { kv } of events) {
    const key = kv.key.toString();
    if (kv.modRevision < last) report(`event ${kv.modRevision} came after ${last}`);
    if (kv.modRevision === last && keys.has(key)) report(`event ${kv.modRevision} of ${key} came twice`);
    if (contiguous && last > 0 && kv.modRevision > last + 1)
      report(`events ${last + 1} to ${kv.modRevision - 1} are missing`);
    if (kv.modRevision !== last) keys = new Set();
    keys.add(key);
    last = kv.modRevision;
  }
}

/**
 * An operation that began after another was acknowledged is not before it in the order of revisions; a
 * write that nobody was told of may be anywhere after its beginning.
 */
function checkRealTime(
  history: History,
  byValue: ReadonlyMap<string, number>,
  report: (text: string) => void,
): void {
  const points: { at: number; operation: Started; revision: number; end: boolean }[] = [];
  for (const operation of history.finished) {
    points.push({ at: operation.completed, operation, revision: operation.revision, end: true });
    points.push({ at: operation.invoked, operation, revision: operation.revision, end: false });
  }
  for (const operation of history.open) {
    const revision = operation.value === undefined ? undefined : byValue.get(operation.value);
    if (revision !== undefined) points.push({ at: operation.invoked, operation, revision, end: false });
  }
  points.sort((a, b) => a.at - b.at);
  let acknowledged = 0;
  for (const { operation, revision, end } of points) {
    if (end) acknowledged = Math.max(acknowledged, revision);
    else if (operation.kind === "write" ? revision <= acknowledged : revision < acknowledged)
      report(
        `a ${operation.kind} of ${operation.key} has revision ${revision} although ${acknowledged} was acknowledged before it began`,
      );
  }
}

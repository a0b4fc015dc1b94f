/**
 * Which keys changed lately, without their values: a bounded list that answers "what was the last change of this
 * range after that revision".
 */
import type { Revision, WatchRequest } from "../../contract.ts";
import { inSpan, spanOf, type Span } from "../../engine/span.ts";

/** One change of one key. */
export interface RecentChange {
  readonly revision: Revision;
  readonly key: Buffer;
  readonly type: "put" | "delete";
}

/** The newest changes in order of revision; the oldest are forgotten beyond `limit`. */
export class RecentChanges {
  readonly #limit: number;
  #changes: RecentChange[] = [];
  #floor: Revision;

  /** Knows everything after `floor` that is added from now on. */
  constructor(floor: Revision, limit: number) {
    this.#floor = floor;
    this.#limit = limit;
  }

  /** Adds the next change; the key is copied, so that a message of the network is not kept alive. */
  add({ revision, key, type }: RecentChange): void {
    this.#changes.push({ revision, key: Buffer.from(key), type });
    if (this.#changes.length < 2 * this.#limit) return;
    const dropped = this.#changes.splice(0, this.#limit);
    this.#floor = dropped.at(-1)?.revision ?? this.#floor;
  }

  /**
   * Revision of the last change that `request` would deliver, later than `after` and not later than `through`; 0 for none.
   * `undefined` when that is too long ago to be known.
   */
  lastFor(request: WatchRequest, after: Revision, through: Revision): Revision | undefined {
    if (after < this.#floor) return undefined;
    const span = spanOf(request);
    for (let i = this.#changes.length - 1; i >= 0; i--) {
      const change = this.#changes[i];
      if (!change || change.revision <= after) break;
      if (change.revision <= through && wants(request, span, change)) return change.revision;
    }
    return 0;
  }
}

/** Whether a watch of `request`, whose range is `span`, delivers a change. */
export function wants(request: WatchRequest, span: Span, { key, type }: RecentChange): boolean {
  return !request.filters?.includes(type === "put" ? "noput" : "nodelete") && inSpan(span, key);
}

/**
 * Limits on requests that run at once: one for reads, one for writes. A watch counts only while it starts.
 *
 * The server's own controllers and `system:masters` are exempt, as are health checks and leases' renewals: an
 * overload must not cost anybody their leadership.
 */
import { mastersGroup } from "../auth/identity.ts";
import { tooManyRequests } from "../status/status.ts";
import type { RequestContext } from "./context.ts";

/** Requests at once. */
export interface InFlightLimits {
  readonly reads: number;
  readonly writes: number;
}

/** Upstream's defaults. */
export const defaultLimits: InFlightLimits = { reads: 400, writes: 200 };

const readVerbs = new Set(["get", "list", "watch", "head", "options"]);

/** Counts running requests. */
export class InFlight {
  readonly #limits: InFlightLimits;
  #reads = 0;
  #writes = 0;

  constructor(limits: InFlightLimits) {
    this.#limits = limits;
  }

  /** Takes a place; the answer gives it back, once. Fails with 429. */
  enter(context: RequestContext): () => void {
    const { info } = context;
    if (context.inProcess || !info.isResource || context.user.groups.includes(mastersGroup)) return () => {};
    if (info.resource === "leases" && info.verb !== "list" && info.verb !== "watch") return () => {};
    const read = readVerbs.has(info.verb);
    if (read ? this.#reads >= this.#limits.reads : this.#writes >= this.#limits.writes)
      throw tooManyRequests();
    if (read) this.#reads++;
    else this.#writes++;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      if (read) this.#reads--;
      else this.#writes--;
    };
  }
}

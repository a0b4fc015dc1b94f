/**
 * The hub's etcd face for zones: who calls is read from a signed token, what they may touch from the zone table.
 *
 * Only hubs register it. Every call is checked; streams end when the key that opened them is revoked. Each zone has
 * its own bounds, so that one cannot starve the others.
 */
import { createHash } from "node:crypto";
import { TokenBucket } from "@kontinuum/controller";
import { CodedError, type Edges } from "@kontinuum/std";
import { etcdServices, type EtcdAccess, type EtcdCall, type LeaseId, type Store } from "@kontinuum/storage";
import { LRUCache } from "lru-cache";
import type { ZoneCaller, ZoneKeyring } from "../identity/zone-keyring.ts";
import { ZoneKeys } from "./zone-keys.ts";
import { zoneMayRead, zoneWriteRefusal, type ZoneScope } from "./zone-rules.ts";

/** Bounds of one zone. */
export interface ZoneBounds {
  /** Calls a second, over a longer time and at once. */
  readonly callsPerSecond: number;
  readonly callsBurst: number;
  /** Watch streams, and watches on one of them. */
  readonly streams: number;
  readonly watchesPerStream: number;
  /** Objects of its own that a zone may create. */
  readonly keys: number;
}

/** What a zone of ordinary size stays far below. */
export const defaultZoneBounds: ZoneBounds = {
  callsPerSecond: 500,
  callsBurst: 2000,
  streams: 64,
  watchesPerStream: 256,
  keys: 200,
};

/** Zones whose call rate is remembered. */
const rememberedZones = 4096;

/** Everything the proxy works on. */
export interface EtcdProxyOptions {
  readonly store: Store;
  readonly keyring: ZoneKeyring;
  readonly edges: Pick<Edges, "clock" | "random" | "log">;
  readonly bounds?: ZoneBounds;
}

interface ZoneUse {
  readonly calls: TokenBucket;
  readonly keys: ZoneKeys;
  streams: number;
}

/** Routes to give to the API server's gRPC option. */
export function etcdProxy(options: EtcdProxyOptions): ReturnType<typeof etcdServices> {
  const bounds = options.bounds ?? defaultZoneBounds;
  const uses = new LRUCache<string, ZoneUse>({ max: rememberedZones });
  return etcdServices(options.store, {
    authorize: async (call) => {
      const caller = await options.keyring.authenticate(bearerOf(call));
      const use = uses.get(caller.uid) ?? {
        calls: new TokenBucket(options.edges.clock, bounds.callsPerSecond, bounds.callsBurst),
        keys: new ZoneKeys(options.store, options.edges.clock, caller, bounds.keys),
        streams: 0,
      };
      uses.set(caller.uid, use);
      const waitMs = use.calls.reserve();
      if (waitMs > 0) {
        throw new CodedError(
          "rate_limited",
          `zone ${caller.name} makes more than ${bounds.callsPerSecond} calls a second`,
          {
            retryAfterMs: waitMs,
          },
        );
      }
      return accessOf(caller, use, bounds, options.edges);
    },
  });
}

function bearerOf({ headers }: EtcdCall): string {
  const header = headers.get("authorization");
  if (header === null) throw new CodedError("unauthenticated", "the call carries no authorization metadata");
  const token = /^Bearer ([^\s]+)$/i.exec(header)?.[1];
  if (token === undefined)
    throw new CodedError("unauthenticated", "the authorization metadata is not a bearer token");
  return token;
}

function accessOf(
  caller: ZoneCaller,
  use: ZoneUse,
  bounds: ZoneBounds,
  edges: EtcdProxyOptions["edges"],
): EtcdAccess {
  const scope: ZoneScope = caller;
  return {
    operator: false,
    signal: caller.revoked,
    maxWatches: bounds.watchesPerStream,
    streamOpened: () => {
      if (use.streams >= bounds.streams) {
        throw new CodedError("rate_limited", `zone ${caller.name} has ${bounds.streams} watch streams open`, {
          retryAfterMs: 1000,
        });
      }
      use.streams++;
      return () => {
        use.streams--;
      };
    },
    canRead: ({ key, value }) => zoneMayRead(scope, key.toString("utf8"), value),
    checkWrite: async ({ key, value, previous, lease }) => {
      const name = key.toString("utf8");
      const refusal = zoneWriteRefusal(scope, name, previous?.value, value);
      if (refusal !== undefined) {
        edges.log.warn("a zone's write was refused", { zone: caller.name, storeKey: name, reason: refusal });
        throw new CodedError("permission_denied", `zone ${caller.name} may not write ${name}: ${refusal}`);
      }
      if (lease !== 0n) checkLease(caller, lease);
      if (!previous && value) await use.keys.hold(name);
    },
    chooseLease: () => leasePrefix(caller.uid) | (BigInt(edges.random.integer(2 ** 22)) + 1n),
    checkLease: (action, id) => {
      if (action === "list") throw new CodedError("permission_denied", "a zone may not list leases");
      if (action === "grant" && id === 0n) return;
      checkLease(caller, id);
    },
  };
}

/** Leases of a zone carry 39 bits of a hash of its UID, so that every replica can tell them without a record. */
function leasePrefix(uid: string): LeaseId {
  const hash = createHash("sha256").update(uid).digest().readBigUInt64BE();
  return (hash >> 25n) << 23n;
}

function checkLease(caller: ZoneCaller, id: LeaseId): void {
  if ((id >> 23n) << 23n !== leasePrefix(caller.uid)) {
    throw new CodedError("permission_denied", `the lease is not one of zone ${caller.name}`);
  }
}

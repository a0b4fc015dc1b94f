/**
 * Holds namespaces to their quotas: what a write adds is booked in the status of every quota that counts it,
 * before the object is stored.
 *
 * Booking is a conditional write of the quota, so two servers can never both give away the last place. A write
 * that fails afterwards leaves its booking behind until the usage is counted again (`controllers/quota-usage.ts`).
 */
import type { Transport } from "@kontinuum/controller";
import { at, isObject, type JsonObject } from "@kontinuum/std";
import { call, failedWith } from "../controllers/call.ts";
import { objectPath } from "../controllers/object-path.ts";
import {
  amountText,
  chargeOf,
  countedResource,
  inScope,
  isScoped,
  type Amounts,
} from "../kinds/quota-charge.ts";
import { quantityNano } from "../kinds/quantity.ts";
import { entries, items, text } from "../kinds/read.ts";
import { metaText } from "../registry/metadata.ts";
import { quotaUsage } from "../registry/quota-usage.ts";
import type { ResourceSet } from "../registry/resource-set.ts";
import type { ObjectStorage } from "../registry/storage.ts";
import type { ResourceDefinition } from "../resource.ts";
import { conflict, forbidden } from "../status/status.ts";
import { entryObject } from "../watch-cache/entry.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./admission.ts";

/** Bookings tried before the request is answered 409. */
const maxTries = 20;

/** What the plug-in needs. */
export interface ResourceQuotaOptions {
  readonly resources: ResourceSet;
  readonly storage: ObjectStorage;
  /** The server's own client. */
  readonly transport: () => Transport;
}

/** The plug-in. Refuses with 403 what exceeds a quota. */
export function resourceQuota(options: ResourceQuotaOptions): AdmissionPlugin {
  return {
    name: "ResourceQuota",
    async validate(request) {
      const { resource, subresource, operation, namespace, object } = request;
      if (subresource !== "" || operation === "DELETE" || object === undefined || !resource.namespaced)
        return;
      const kind = options.resources.get("", "v1", "resourcequotas");
      if (kind === undefined || kind === resource) return;
      const store = options.storage.of(kind);
      await store.cache.load();
      const quotas = store.cache.list(store.scope(namespace));
      if (quotas.length === 0) return;
      const added = addedBy(request, object);
      for (const entry of quotas) {
        if (entry.error === undefined) await book(options, kind, entryObject(entry), added, request);
      }
    },
  };
}

/** What a write costs more than before. */
function addedBy({ resource, oldObject }: AdmissionRequest, object: JsonObject): Amounts {
  const added = chargeOf(resource, object);
  const before = oldObject === undefined ? new Map<string, bigint>() : chargeOf(resource, oldObject);
  for (const [key, nano] of added) {
    const more = nano - (before.get(key) ?? 0n);
    if (more > 0n) added.set(key, more);
    else added.delete(key);
  }
  return added;
}

async function book(
  options: ResourceQuotaOptions,
  kind: ResourceDefinition,
  first: JsonObject,
  more: Amounts,
  request: AdmissionRequest,
): Promise<void> {
  const { resource, object, oldObject, name, namespace, dryRun } = request;
  const isPods = resource.group === "" && resource.plural === "pods";
  let quota = first;
  for (let attempt = 0; attempt < maxTries; attempt++) {
    if (isScoped(quota) && !inScope(quota, resource, object ?? {})) return;
    // What an update brings into a quota's scope is new to that quota as a whole.
    const isNew = isScoped(quota) && oldObject !== undefined && !inScope(quota, resource, oldObject);
    const added = isNew && object !== undefined ? chargeOf(resource, object) : more;
    const hard = entries(quota, "spec", "hard");
    if (isPods && request.operation === "CREATE") mustSay(quota, hard, object ?? {}, request);
    const keys = hard.map(([key]) => key).filter((key) => added.has(key));
    if (keys.length === 0) return;
    const used = await usage(options, quota);
    check(quota, keys, used, added, request);
    if (dryRun) return;
    const next = { ...used };
    for (const key of keys) next[key] = amountText(key, nanoOf(used[key]) + (added.get(key) ?? 0n));
    const path = objectPath(kind, namespace, metaText(quota, "name"));
    try {
      await call(options.transport(), "PUT", `${path}/status`, {
        ...quota,
        status: { hard: at(quota, "spec", "hard"), used: next },
      });
      return;
    } catch (error) {
      if (failedWith(error, 404)) return;
      if (!failedWith(error, 409)) throw error;
      const newest = await call(options.transport(), "GET", path).catch((reason: unknown) => {
        if (failedWith(reason, 404)) return undefined;
        throw reason;
      });
      if (newest === undefined) return;
      quota = newest;
    }
  }
  throw conflict(resource, name, `the quota ${metaText(quota, "name")} is busy; please try again`);
}

const nanoOf = (value: unknown): bigint => quantityNano(value) ?? 0n;

/** The booked usage; counted when the quota is new or its limits have changed since. */
async function usage(options: ResourceQuotaOptions, quota: JsonObject): Promise<Record<string, unknown>> {
  const booked = at(quota, "status", "used");
  const known = isObject(booked) ? booked : {};
  const complete = entries(quota, "spec", "hard").every(
    ([key]) => Object.hasOwn(known, key) || countedResource(key) === undefined,
  );
  return complete ? known : quotaUsage(options.resources, options.storage, quota);
}

function check(
  quota: JsonObject,
  keys: readonly string[],
  used: Record<string, unknown>,
  added: Amounts,
  { resource, name }: AdmissionRequest,
): void {
  const exceeded = keys
    .filter((key) => nanoOf(used[key]) + (added.get(key) ?? 0n) > nanoOf(at(quota, "spec", "hard", key)))
    .toSorted();
  if (exceeded.length === 0) return;
  const list = (value: (key: string) => string): string =>
    exceeded.map((key) => `${key}=${value(key)}`).join(",");
  throw forbidden(
    resource,
    name,
    `exceeded quota: ${metaText(quota, "name")}, requested: ${list((key) => amountText(key, added.get(key) ?? 0n))}, ` +
      `used: ${list((key) => String(used[key] ?? "0"))}, limited: ${list((key) => String(at(quota, "spec", "hard", key)))}`,
  );
}

/** A quota on computing power needs every container to say how much it takes. */
function mustSay(
  quota: JsonObject,
  hard: readonly [string, unknown][],
  pod: JsonObject,
  { resource, name }: AdmissionRequest,
): void {
  const missing: string[] = [];
  for (const [key] of hard) {
    const match = /^(?:(requests|limits)\.)?(cpu|memory|ephemeral-storage)$/.exec(key);
    if (match === null) continue;
    const [, kind = "requests", what = ""] = match;
    const silent = items(pod, "spec", "containers").filter(
      (container) => text(container, "resources", kind, what) === "",
    );
    if (silent.length > 0)
      missing.push(`${key} for: ${silent.map((container) => text(container, "name")).join(",")}`);
  }
  if (missing.length === 0) return;
  throw forbidden(
    resource,
    name,
    `failed quota: ${metaText(quota, "name")}: must specify ${missing.toSorted().join("; ")}`,
  );
}

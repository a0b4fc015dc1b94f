/**
 * Gives services their cluster addresses and node ports before they are written.
 *
 * What is taken is read from the stored services. Between that look and the write another request may look too,
 * so what was given out lately is remembered here; servers that share a store pick at random from the same ranges.
 */
import { cloneJson } from "../json/json.ts";
import { at, stringAt, type Clock, type JsonObject, type Random } from "@kontinuum/std";
import { allocateService, releaseOldAddresses } from "../kinds/index.ts";
import { invalid } from "../status/status.ts";
import type { AdmissionPlugin } from "./admission.ts";

/** How long what was given out counts as taken without being stored. */
const rememberMs = 10_000;
/** Most services remembered; the oldest is forgotten first. */
const maxRemembered = 5000;

/** What the plug-in needs. */
export interface ServiceAddressOptions {
  /** All stored services. */
  services(): Promise<readonly JsonObject[]>;
  readonly random: Random;
  readonly clock: Clock;
}

/** The plug-in. Refuses with 422 what is taken or out of range. */
export function serviceAddresses(options: ServiceAddressOptions): AdmissionPlugin {
  const recent = new Map<string, { readonly service: JsonObject; readonly until: number }>();
  return {
    name: "ServiceAddresses",
    async mutate({ resource, subresource, operation, object, oldObject, dryRun, namespace, name }) {
      if (resource.group !== "" || resource.plural !== "services" || subresource !== "") return;
      if (operation === "DELETE" || object === undefined) return;
      if (oldObject !== undefined) releaseOldAddresses(object, oldObject);
      const now = options.clock.now();
      for (const [key, { until }] of recent) {
        if (until > now && recent.size <= maxRemembered) break;
        recent.delete(key);
      }
      const stored = await options.services();
      const lately = [...recent.values()].map(({ service }) => service);
      const before = cloneJson(object["spec"]);
      const errors = allocateService(object, [...stored, ...lately], options.random);
      if (errors.length > 0) throw invalid(resource, name, errors);
      if (dryRun || name === "") return;
      const service = { metadata: { namespace, name }, spec: picked(before, object["spec"]) };
      const key = `${namespace}/${name}`;
      recent.delete(key);
      recent.set(key, { service, until: now + rememberMs });
    },
  };
}

/** What was picked here, without what the request itself asked for: that is judged by what is stored. */
function picked(before: unknown, after: unknown): JsonObject {
  const had = at(before, "ports");
  const ports = at(after, "ports");
  const asked = (index: number): boolean => Array.isArray(had) && Boolean(at(had, index, "nodePort"));
  return {
    clusterIPs: stringAt(before, "clusterIP") ? [] : at(after, "clusterIPs"),
    ports: Array.isArray(ports) ? ports.filter((_port, index) => !asked(index)) : [],
  };
}

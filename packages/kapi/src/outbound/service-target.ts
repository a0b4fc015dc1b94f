/**
 * Where a webhook or an aggregated API lives: a URL, or a Service of this cluster.
 *
 * A Service is found by the embedder's resolver first, then by its external name, then by its endpoints.
 */
import { at, CodedError, isObject, stringAt, type JsonObject } from "@kontinuum/std";
import type { OutboundTarget } from "./target-client.ts";

/** A place to connect to. */
export interface ServiceAddress {
  readonly host: string;
  readonly port: number;
}

/** The embedder's way to find a Service. `undefined`: look at its objects. */
export type ServiceResolver = (
  namespace: string,
  name: string,
  port: number,
) => Promise<ServiceAddress | undefined>;

/** Reads a core or discovery object; lists EndpointSlices of a service. */
export interface ServiceObjects {
  service(namespace: string, name: string): Promise<JsonObject | undefined>;
  slices(namespace: string, service: string): Promise<readonly JsonObject[]>;
  endpoints(namespace: string, name: string): Promise<JsonObject | undefined>;
}

/** Finds targets. */
export class ServiceTargets {
  readonly #objects: ServiceObjects;
  readonly #resolver: ServiceResolver | undefined;

  constructor(objects: ServiceObjects, resolver: ServiceResolver | undefined) {
    this.#objects = objects;
    this.#resolver = resolver;
  }

  /** The target of a `clientConfig` (`url` or `service`, `caBundle`). Fails with `unavailable` or `invalid_argument`. */
  async ofClientConfig(config: unknown): Promise<OutboundTarget> {
    const bundle = stringAt(config, "caBundle");
    const ca =
      bundle === undefined || bundle === "" ? undefined : Buffer.from(bundle, "base64").toString("utf8");
    const url = stringAt(config, "url");
    if (url !== undefined) {
      let parsed: URL;
      try {
        parsed = new URL(url);
      } catch {
        throw new CodedError("invalid_argument", "the webhook's url can't be read");
      }
      if (parsed.protocol !== "https:")
        throw new CodedError("invalid_argument", "a webhook's url must use https");
      const host = parsed.hostname.replace(/^\[|\]$/g, "");
      return { host, port: Number(parsed.port || 443), path: `${parsed.pathname}${parsed.search}`, ca };
    }
    const service = at(config, "service");
    if (!isObject(service)) throw new CodedError("invalid_argument", "a webhook needs a url or a service");
    const namespace = stringAt(service, "namespace") ?? "";
    const name = stringAt(service, "name") ?? "";
    const port = typeof service["port"] === "number" ? service["port"] : 443;
    const path = stringAt(service, "path") ?? "/";
    const address = await this.address(namespace, name, port);
    return {
      ...address,
      path: path.startsWith("/") ? path : `/${path}`,
      ca,
      serverName: `${name}.${namespace}.svc`,
    };
  }

  /** Where a service's port is reached. Fails with `unavailable`; `details.reason` is the reason of an APIService condition. */
  async address(namespace: string, name: string, port: number): Promise<ServiceAddress> {
    const found = await this.#resolver?.(namespace, name, port);
    if (found) return found;
    const service = await this.#objects.service(namespace, name);
    const fail = (reason: string, message: string): never => {
      throw new CodedError("unavailable", message, { details: { reason } });
    };
    if (!service) return fail("ServiceNotFound", `service/${name} in "${namespace}" is not present`);
    if (stringAt(service, "spec", "type") === "ExternalName")
      return { host: stringAt(service, "spec", "externalName") ?? "", port };
    const ports = at(service, "spec", "ports");
    const declared = Array.isArray(ports)
      ? ports.find((item: unknown) => at(item, "port") === port)
      : undefined;
    if (!isObject(declared))
      return fail("ServicePortError", `service/${name} in "${namespace}" is not listening on port ${port}`);
    const portName = stringAt(declared, "name") ?? "";
    for (const slice of await this.#objects.slices(namespace, name)) {
      const address = firstAddress(slice["endpoints"]);
      const number = portNumber(slice["ports"], portName);
      if (address !== undefined && number !== undefined) return { host: address, port: number };
    }
    const endpoints = await this.#objects.endpoints(namespace, name);
    const subsets = endpoints?.["subsets"];
    for (const subset of Array.isArray(subsets) ? subsets : []) {
      const address = stringAt(subset, "addresses", 0, "ip");
      const number = portNumber(at(subset, "ports"), portName);
      if (address !== undefined && number !== undefined) return { host: address, port: number };
    }
    return fail(
      endpoints ? "MissingEndpoints" : "EndpointsNotFound",
      `endpoints for service/${name} in "${namespace}" have no addresses with port name "${portName}"`,
    );
  }
}

function firstAddress(endpoints: unknown): string | undefined {
  for (const endpoint of Array.isArray(endpoints) ? endpoints : []) {
    if (at(endpoint, "conditions", "ready") === false) continue;
    const address = stringAt(endpoint, "addresses", 0);
    if (address !== undefined) return address;
  }
  return undefined;
}

function portNumber(ports: unknown, name: string): number | undefined {
  for (const port of Array.isArray(ports) ? ports : []) {
    const number = at(port, "port");
    if ((stringAt(port, "name") ?? "") === name && typeof number === "number") return number;
  }
  return undefined;
}

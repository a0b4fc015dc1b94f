/**
 * Registering a machine by its address: what the command line and the console do.
 */
import type { Client } from "@kontinuum/controller";
import { CodedError, type Network } from "@kontinuum/std";
import { annotations, instanceKind, type Instance } from "../../kinds/index.ts";
import { ensureExists } from "../ensure.ts";
import { instanceName } from "./instance-name.ts";

/** An address as it goes into an Instance. */
export interface ResolvedAddress {
  readonly address: string;
  /** The name it was resolved from. */
  readonly hostname?: string;
}

/** Trims, and resolves a host name to its first address. Fails with `invalid_argument` or `unavailable`. */
export async function resolveAddress(given: string, network: Network): Promise<ResolvedAddress> {
  const text = given.trim();
  if (text === "") throw new CodedError("invalid_argument", "an address or host name is required");
  const [address] = await network.resolve(text);
  if (address === undefined)
    throw new CodedError("unavailable", `host name ${JSON.stringify(text)} has no address`);
  return address === text ? { address } : { address, hostname: text };
}

/** The Instance of an address. */
export function instanceFor(
  namespace: string,
  { address, hostname }: ResolvedAddress,
  labels?: Readonly<Record<string, string>>,
): Instance {
  return {
    apiVersion: "kontinuum.sh/v1alpha2",
    kind: "Instance",
    metadata: {
      namespace,
      name: instanceName(address),
      ...(labels ? { labels: { ...labels } } : {}),
      ...(hostname === undefined ? {} : { annotations: { [annotations.hostname]: hostname } }),
    },
    spec: { interfaces: [address] },
  };
}

/** Registers a machine; one that is registered already is returned as it is. */
export async function addInstance(
  client: Client,
  network: Network,
  input: {
    readonly namespace: string;
    readonly address: string;
    readonly labels?: Readonly<Record<string, string>>;
  },
): Promise<Instance> {
  if (input.namespace === "") throw new CodedError("invalid_argument", "a namespace is required");
  const resolved = await resolveAddress(input.address, network);
  return ensureExists(client, instanceKind.resource, instanceFor(input.namespace, resolved, input.labels));
}

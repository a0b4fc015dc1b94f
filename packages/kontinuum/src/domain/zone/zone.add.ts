/**
 * Adding a zone: the objects from which everything else follows. The command line and the console share it.
 *
 * The names are fixed, so adding twice, or from two places at once, gives the same objects. What exists is
 * never changed, with one exception: a free machine of the address given is adopted.
 */
import { isDeleting, setControllerReference, type Client } from "@kontinuum/controller";
import { CodedError, isCoded, isDnsLabel, type Network } from "@kontinuum/std";
import {
  instanceKind,
  instancePoolKind,
  kontinuumKind,
  labels,
  systemNamespace,
  talosClusterKind,
  zoneKind,
  type Instance,
  type Zone,
} from "../../kinds/index.ts";
import { ensureExists, ensureNamespace } from "../ensure.ts";
import { instanceFor, resolveAddress } from "../instance/instance.add.ts";

const apiVersion = "kontinuum.sh/v1alpha2";

/** What is asked for. */
export interface ZoneInput {
  readonly region: string;
  readonly zone: string;
  /** Address or host name of the first machine. */
  readonly talosAddress: string;
  /** Empty or absent: the hub's own default domain, if it has one. */
  readonly domain?: string | undefined;
  readonly talosVersion?: string | undefined;
  readonly kubernetesVersion?: string | undefined;
  /** Delete the Instance objects when the cluster is deleted, instead of giving them back. */
  readonly unregisterInstances?: boolean | undefined;
  /** Name of a registered machine to use instead of the one of the address. */
  readonly existingInstance?: string | undefined;
}

/** Creates what is missing and returns the Zone. Fails with `invalid_argument`, `already_exists` or `conflict`. */
export async function addZone(client: Client, network: Network, input: ZoneInput): Promise<Zone> {
  const { region, zone: zoneName } = checked(input);
  const name = `${region}-${zoneName}`;
  const resolved = await resolveAddress(input.talosAddress, network);
  const domain = input.domain || (await hubDomain(client));
  const placement = { [labels.region]: region, [labels.zone]: zoneName };
  const metadata = { namespace: systemNamespace, name, labels: placement };

  await ensureNamespace(client, systemNamespace);
  const zone = await ensureExists(client, zoneKind.resource, {
    apiVersion,
    kind: "Zone",
    metadata: { namespace: systemNamespace, name },
    spec: { region, zone: zoneName, ...(domain === "" ? {} : { domain }) },
  });
  if (zone.spec.region !== region || zone.spec.zone !== zoneName) {
    throw new CodedError(
      "already_exists",
      `the name ${name} is taken by region ${zone.spec.region}, zone ${zone.spec.zone}: pick another region or zone name`,
    );
  }
  if (isDeleting(zone))
    throw new CodedError("conflict", `zone ${name} is being removed: add it again when it is gone`);

  const cluster = {
    apiVersion,
    kind: "TalosCluster",
    metadata: { ...metadata },
    spec: {
      ...(input.talosVersion ? { talos: { version: input.talosVersion } } : {}),
      ...(input.kubernetesVersion ? { kubernetes: { version: input.kubernetesVersion } } : {}),
      controlPlane: { poolRef: { name } },
      ...(input.unregisterInstances ? { teardown: { unregisterInstances: true } } : {}),
    },
  };
  setControllerReference(cluster, zone, zoneKind.resource);
  const owner = await ensureExists(client, talosClusterKind.resource, cluster);

  const pool = {
    apiVersion,
    kind: "InstancePool",
    metadata: { ...metadata },
    spec: { selector: { matchLabels: placement }, replicas: 1 },
  };
  setControllerReference(pool, owner, talosClusterKind.resource);
  await ensureExists(client, instancePoolKind.resource, pool);

  const seed = instanceFor(systemNamespace, resolved, placement);
  const seedName = input.existingInstance || seed.metadata.name;
  await adoptOrCreate(client, { ...seed, metadata: { ...seed.metadata, name: seedName } }, name, {
    mustExist: Boolean(input.existingInstance),
  });
  return zone;
}

function checked(input: ZoneInput): { region: string; zone: string } {
  for (const [name, value] of [
    ["region", input.region],
    ["zone", input.zone],
  ] as const) {
    if (!isDnsLabel(value)) {
      throw new CodedError(
        "invalid_argument",
        `${name} ${JSON.stringify(value)} is not a DNS label: use lower-case letters, digits and dashes, at most 63`,
      );
    }
  }
  const name = `${input.region}-${input.zone}`;
  if (!isDnsLabel(name))
    throw new CodedError("invalid_argument", `region and zone together must not exceed 62 characters`);
  return { region: input.region, zone: input.zone };
}

/** The default domain of the newest hub process; other processes and hand-made entries are not asked. */
async function hubDomain(client: Client): Promise<string> {
  const { items } = await client.list(kontinuumKind.resource, { namespace: systemNamespace });
  const hubs = items
    .filter(({ status }) => status?.role === "ControlPlane" && status.lastHeartbeatTime !== undefined)
    .sort((a, b) =>
      (b.status?.lastHeartbeatTime ?? "").localeCompare(a.status?.lastHeartbeatTime ?? "", "en"),
    );
  return hubs[0]?.status?.config?.server?.dns?.domain ?? "";
}

/** Tries against whoever writes the machine's status at the same time. */
const maxTries = 20;

/** Gives a free machine the zone's labels, or creates it. One that the zone's own pool holds already is fine. */
async function adoptOrCreate(
  client: Client,
  wanted: Instance,
  pool: string,
  options: { readonly mustExist: boolean },
): Promise<void> {
  const { namespace, name } = wanted.metadata;
  for (let attempt = 1; ; attempt++) {
    const present = await client.find(instanceKind.resource, { namespace, name });
    if (!present && options.mustExist)
      throw new CodedError("not_found", `there is no instance ${name} in ${systemNamespace}`);
    const owner = present?.metadata.labels?.[labels.claimedBy];
    if (owner !== undefined && owner !== pool)
      throw new CodedError("conflict", `instance ${name} is claimed by pool ${owner}: pick a free machine`);
    try {
      await (present ? adopt(client, present, wanted) : client.create(instanceKind.resource, wanted));
      return;
    } catch (error) {
      // Discovery wrote at the same moment, or somebody registered it: look again.
      const isRace = isCoded(error, present ? "conflict" : "already_exists");
      if (!isRace || attempt === maxTries) throw error;
    }
  }
}

async function adopt(client: Client, present: Instance, wanted: Instance): Promise<void> {
  const merged = { ...present.metadata.labels, ...wanted.metadata.labels };
  if (Object.entries(merged).every(([key, value]) => present.metadata.labels?.[key] === value)) return;
  await client.update(instanceKind.resource, {
    ...present,
    metadata: { ...present.metadata, labels: merged },
  });
}

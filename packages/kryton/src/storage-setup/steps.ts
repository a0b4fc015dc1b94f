/**
 * The steps of a storage set-up. Each looks at what is there, does what is missing and may be run again at any time:
 * that is what makes a set-up resumable.
 *
 * Sources: KubeVirt user guide (feature gate `Snapshot`), CSI snapshotter deployment, Longhorn and Rook documentation.
 */
import { at, CodedError, stringAt, type Clock } from "@kontinuum/std";
import { defaultClassAnnotation, type KubernetesStorage } from "../cluster/cluster-storage.ts";
import type { Kubernetes, KubeObject } from "../cluster/kubernetes.ts";
import { rate } from "../storage-inventory/inventory.ts";
import { hasManifests, readManifests, type Part } from "./manifests.ts";
import { cephCluster, cephPool, classOf, rookPaths, snapshotClass, storageClass } from "./objects.ts";
import { awaitedKinds, lacking } from "./readiness.ts";
import type { SetupLogLine, SetupRequest } from "./record.ts";

/** What a step works with. */
export interface StepTools {
  readonly api: Kubernetes;
  readonly storage: KubernetesStorage;
  readonly clock: Clock;
  /** Folder with the manifests. */
  readonly folder: string;
  /** Time between two looks, milliseconds. */
  readonly pollMs: number;
  readonly signal: AbortSignal;
  /** Adds a line to the log. */
  say(level: SetupLogLine["level"], message: string): Promise<void>;
  /** Says what is waited for; repeated texts are not logged again. */
  waiting(message: string): Promise<void>;
}

/** A step: resolves when its goal is reached. */
export type Step = (request: SetupRequest, tools: StepTools) => Promise<void>;

const kubevirts = "/apis/kubevirt.io/v1/kubevirts";
const snapshotApi = "/apis/snapshot.storage.k8s.io/v1";

/** The steps, in the order of their names in the record. */
export const steps: readonly Step[] = [enableSnapshots, installBackend, applyClasses, verifyInventory];

async function enableSnapshots(_request: SetupRequest, tools: StepTools): Promise<void> {
  const { api, signal, folder, say } = tools;
  await openFeatureGate(tools);
  if (await hasManifests(folder, "snapshot-controller"))
    return void (await applyPart("snapshot-controller", tools));
  if ((await api.find(snapshotApi, signal)) !== undefined) {
    return say("info", "The cluster has the CSI snapshot API already.");
  }
  await readManifests(folder, "snapshot-controller");
}

async function openFeatureGate({ api, signal, say }: StepTools): Promise<void> {
  for (const kubevirt of await api.list(kubevirts, signal)) {
    const gates = at(kubevirt, "spec", "configuration", "developerConfiguration", "featureGates");
    const open = Array.isArray(gates) ? gates.map(String) : [];
    const name = stringAt(kubevirt, "metadata", "name") ?? "";
    const namespace = stringAt(kubevirt, "metadata", "namespace") ?? "";
    if (open.includes("Snapshot")) continue;
    const developerConfiguration = { featureGates: [...open, "Snapshot"] };
    const path = `/apis/kubevirt.io/v1/namespaces/${encodeURIComponent(namespace)}/kubevirts/${encodeURIComponent(name)}`;
    await api.merge(path, { spec: { configuration: { developerConfiguration } } }, signal);
    await say("ok", `KubeVirt ${namespace}/${name}: feature gate Snapshot is open.`);
  }
}

async function installBackend(request: SetupRequest, tools: StepTools): Promise<void> {
  const { api, signal } = tools;
  if (request.backend === "longhorn") return void (await applyPart("longhorn", tools));
  if (request.rookMode === "pool-only") {
    if ((await api.list(rookPaths.clusters, signal)).length === 0) {
      throw new CodedError(
        "failed_precondition",
        "pool-only needs a Ceph cluster of Rook in namespace rook-ceph",
      );
    }
  } else {
    const own = await applyPart("rook-ceph", tools, isCephCluster);
    const image = own.map((object) => stringAt(object, "spec", "cephVersion", "image")).find(Boolean);
    await applyAll([cephCluster(request, image)], tools);
  }
  await applyAll([cephPool(request.rookMode)], tools);
}

async function applyClasses({ backend, setDefault }: SetupRequest, tools: StepTools): Promise<void> {
  const { api, signal, say } = tools;
  const { name, driver } = classOf[backend];
  const path = `/apis/storage.k8s.io/v1/storageclasses/`;
  const existing = await api.find(`${path}${name}`, signal);
  if (existing === undefined) {
    await api.apply(storageClass(backend), signal);
    await say("ok", `StorageClass ${name} was made.`);
  } else if (stringAt(existing, "provisioner") !== driver) {
    throw new CodedError(
      "failed_precondition",
      `StorageClass ${name} belongs to ${stringAt(existing, "provisioner") ?? "somebody else"}, not to ${driver}; rename or delete it`,
    );
  } else {
    await say("info", `StorageClass ${name} is there and stays as it is.`);
  }
  await api.apply(snapshotClass(backend), signal);
  await say("ok", `VolumeSnapshotClass ${name} was applied.`);
  if (!setDefault) return;
  const mark = (value: string) => ({ metadata: { annotations: { [defaultClassAnnotation]: value } } });
  for (const found of await tools.storage.classes(signal)) {
    if (found.default && found.name !== name) {
      await api.merge(`${path}${encodeURIComponent(found.name)}`, mark("false"), signal);
      await say("info", `StorageClass ${found.name} is not the default any more.`);
    }
  }
  await api.merge(`${path}${name}`, mark("true"), signal);
  await say("ok", `StorageClass ${name} is the cluster's default.`);
}

async function verifyInventory({ backend }: SetupRequest, tools: StepTools): Promise<void> {
  const { api, storage, signal } = tools;
  const { name, driver } = classOf[backend];
  await until(tools, async () => {
    const csi = await api.find(`/apis/storage.k8s.io/v1/csidrivers/${driver}`, signal);
    if (csi === undefined) return `CSI driver ${driver} has not registered yet`;
    const rated = rate(await storage.classes(signal), await storage.snapshotClasses(signal), []);
    const found = rated.find((entry) => entry.name === name);
    return found?.snapshotCapable ? undefined : `StorageClass ${name} has no snapshot class yet`;
  });
  await tools.say("ok", `Machines can be put on ${name}, with snapshots.`);
}

/** A Ceph cluster among the manifests says which image; what it does with disks is the request's. */
function isCephCluster({ kind }: KubeObject): boolean {
  return kind === "CephCluster";
}

/** Applies a part without the objects that `leaveOut` picks; these are handed back. */
async function applyPart(
  part: Part,
  tools: StepTools,
  leaveOut: (object: KubeObject) => boolean = () => false,
): Promise<readonly KubeObject[]> {
  const { objects: all, digest } = await readManifests(tools.folder, part);
  const objects = all.filter((object) => !leaveOut(object));
  await tools.say("info", `Applying ${objects.length} objects of ${part} (sha256 ${digest}).`);
  await applyAll(objects, tools);
  return all.filter(leaveOut);
}

/** Applies objects in their order and waits for those that have to work. */
async function applyAll(objects: readonly KubeObject[], tools: StepTools): Promise<void> {
  const isEarly = ({ kind }: KubeObject): boolean =>
    kind === "Namespace" || kind === "CustomResourceDefinition";
  for (const group of [objects.filter(isEarly), objects.filter((object) => !isEarly(object))]) {
    for (const object of group) await tools.api.apply(object, tools.signal);
    for (const object of group.filter(({ kind }) => awaitedKinds.includes(kind))) {
      const path = await tools.api.pathOf(object, tools.signal);
      await until(tools, async () => lacking(object, await tools.api.find(path, tools.signal)));
      await tools.say("ok", `${object.kind} ${object.metadata.name} is ready.`);
    }
  }
}

/** Looks again and again until nothing is lacking. The limit of the step ends it by its signal. */
async function until(tools: StepTools, look: () => Promise<string | undefined>): Promise<void> {
  for (;;) {
    const missing = await look();
    if (missing === undefined) return;
    await tools.waiting(missing);
    await tools.clock.sleep(tools.pollMs, tools.signal);
  }
}

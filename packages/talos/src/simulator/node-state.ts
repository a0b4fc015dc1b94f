/**
 * What a node is at the moment, and everything that shows it: services, resources, events, journal.
 *
 * Whoever changes the state does it here, so that every change is told everywhere it shows. Nothing here moves a node
 * by itself.
 */
import type { Edges, Log } from "@kontinuum/std";
import type { SimulatedCluster } from "./cluster.ts";
import type { NodeFaults } from "./faults.ts";
import { hardwareResources } from "./hardware-resources.ts";
import { systemDiskOf } from "./install-target.ts";
import type { MachineSpec } from "./machine-spec.ts";
import { stableHostname, type NodeConfig } from "./node-config.ts";
import type { NodeDisk } from "./node-disk.ts";
import { NodeEvents } from "./node-events.ts";
import { NodeJournal } from "./node-journal.ts";
import { baseServices, NodeServices } from "./node-services.ts";
import type { NodeStage, NodeView, ServiceState } from "./node-view.ts";
import { ResourceStore, type ResourceDescription } from "./resource-store.ts";
import { stateResources } from "./state-resources.ts";
import { unmetConditions } from "./unmet-conditions.ts";

/** Options of a {@link NodeState}. */
export interface NodeStateOptions {
  readonly spec: MachineSpec;
  readonly disk: NodeDisk;
  readonly edges: Edges;
  readonly faults: () => NodeFaults;
  /** Whether Kubernetes has the node, and as ready. */
  readonly kubernetesReady: () => boolean | undefined;
}

/** See the module's comment. */
export class NodeState {
  readonly resources: ResourceStore;
  readonly journal: NodeJournal;
  readonly events: NodeEvents;
  /** The active configuration; `undefined` in maintenance mode and while off. */
  config: NodeConfig | undefined;
  cluster: SimulatedCluster | undefined;
  /** The container runtime is up. */
  isCriUp = false;
  /** When and as what it booted; the time in milliseconds since the epoch. */
  bootTime = 0;
  bootId = "";
  readonly #options: NodeStateOptions;
  readonly #log: Log;
  readonly #services: NodeServices;
  #stage: NodeStage = "off";
  #isStale = true;
  #hardware: readonly ResourceDescription[] | undefined;

  constructor(options: NodeStateOptions) {
    const { clock, random, log } = options.edges;
    this.#options = options;
    this.#log = log;
    this.resources = new ResourceStore(clock);
    this.journal = new NodeJournal(clock);
    this.events = new NodeEvents(clock, random);
    this.#services = new NodeServices(clock);
  }

  get stage(): NodeStage {
    return this.#stage;
  }

  get hostname(): string {
    return this.config?.facts.hostname ?? stableHostname(this.#options.spec.uuid);
  }

  /** Everything at once. */
  view(): NodeView {
    const { spec, disk, faults, kubernetesReady } = this.#options;
    const { talosVersion, installed, etcdMemberId, meta = {} } = disk.record;
    const services = this.#services.list();
    const ready = kubernetesReady();
    return {
      spec,
      stage: this.#stage,
      hostname: this.hostname,
      talosVersion,
      config: this.config,
      installed,
      meta,
      isTimeSynced: faults().timeNotSynced !== true,
      systemDisk: installed ? systemDiskOf(spec, this.config) : undefined,
      services,
      unmetConditions: unmetConditions({
        faults: faults(),
        services,
        isConfigured: this.config !== undefined,
        hostname: this.hostname,
        kubernetesReady: ready,
      }),
      members: this.cluster?.members() ?? [],
      etcdMemberId: this.#services.stateOf("etcd") === "Running" ? etcdMemberId : undefined,
      kubernetesReady: ready,
    };
  }

  /** The resources, brought up to date. */
  currentResources(): ResourceStore {
    if (this.#isStale) this.#describe();
    return this.resources;
  }

  /** Something that resources show may have changed. Describing them all costs: it waits for a reader. */
  refresh(): void {
    if (this.resources.isWatched && this.#stage !== "off") this.#describe();
    else this.#isStale = true;
  }

  setStage(stage: NodeStage): void {
    if (this.#stage !== stage) {
      this.#log.debug("stage", { stage });
      this.journal.add(`machine is ${stage}`);
    }
    this.#stage = stage;
    this.refresh();
    const isChecked = stage === "booting" || stage === "running";
    this.events.publish({ kind: "stage", stage, unmet: isChecked ? this.view().unmetConditions : [] });
  }

  /** Sets the state of a service. */
  service(id: string, state: ServiceState, message: string, healthy?: boolean): void {
    this.journal.add(`service[${id}](${state}): ${message}`);
    this.#services.set(id, state, message, healthy);
    this.refresh();
  }

  /** A service runs and is well. */
  running(id: string): void {
    this.service(id, "Running", "Started task", true);
  }

  hasService(id: string): boolean {
    return this.#services.stateOf(id) !== undefined;
  }

  /** The services that every node runs from the start. */
  runBaseServices(): void {
    for (const id of baseServices) this.running(id);
  }

  /** Power is on. */
  boot(): void {
    const { clock, random } = this.#options.edges;
    this.bootTime = clock.now();
    this.bootId = random.uuid();
    this.journal.restart();
    this.config = undefined;
    this.#services.clear();
    this.runBaseServices();
    this.setStage("booting");
  }

  /** Ends every watch: the node is going down. */
  endStreams(): void {
    this.resources.close();
    this.events.close();
  }

  /** Nothing runs any more. */
  goDark(stage: NodeStage): void {
    this.cluster = undefined;
    this.config = undefined;
    this.#services.clear();
    this.endStreams();
    this.setStage(stage);
  }

  #describe(): void {
    this.#isStale = false;
    this.#hardware ??= hardwareResources(this.#options.spec);
    this.resources.replace([...this.#hardware, ...stateResources(this.view())]);
  }
}

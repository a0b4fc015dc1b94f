/**
 * The virtual rack behind the demo provider's Talos image: a machine made through the machine API is a simulated
 * Talos node on a loopback address of its own.
 *
 * Which address a machine has is kept in the rack's folder, so that a machine that was configured finds its
 * cluster again after a restart. Calls are idempotent: the provider repeats them when a process comes up.
 */
import { readFile, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import type { CatalogImage, DemoGuest, DemoHook } from "@kontinuum/kryton";
import { CodedError, ensureFolder, isCoded, isObject, type Edges } from "@kontinuum/std";
import { describeMachine, SimulatedRack, type PodRunner } from "@kontinuum/talos";

/** The image that boots a simulated Talos node. */
export const talosImage: CatalogImage = {
  id: "talos-v1.13.0",
  name: "Talos Linux (simulated)",
  version: "1.13.0",
  family: "talos",
  description: "A simulated Talos node in maintenance mode, for the demo provider only.",
  os: "linux",
  architecture: "amd64",
  firmware: "efi",
  providers: ["demo"],
  minCpu: 2,
  minMemoryMiB: 2048,
  defaultDiskGiB: 16,
  tags: ["talos", "simulated"],
};

/** Most machines of a rack. */
const maxMachines = 1000;

/** Where the rack lives. */
export interface VirtualRackOptions {
  readonly edges: Edges;
  /** Folder that keeps the rack. */
  readonly statePath: string;
  /** First address, of 127/8. */
  readonly addressBase: string;
  readonly runners: readonly PodRunner[];
}

/** See the module's comment. */
export class VirtualRack implements DemoHook {
  readonly #rack: SimulatedRack;
  readonly #options: VirtualRackOptions;
  readonly #addresses: Map<string, string>;
  #saving: Promise<void> = Promise.resolve();

  /** Opens the rack of a folder, empty at first. */
  static async open(options: VirtualRackOptions): Promise<VirtualRack> {
    await ensureFolder(options.statePath, { setting: "folder of the virtual rack" });
    const addresses = await readAddresses(addressesFile(options.statePath));
    const rack = await SimulatedRack.create({
      machines: [],
      edges: options.edges,
      addressBase: options.addressBase,
      runners: options.runners,
      statePath: path.join(options.statePath, "nodes"),
    });
    return new VirtualRack(rack, options, addresses);
  }

  private constructor(rack: SimulatedRack, options: VirtualRackOptions, addresses: Map<string, string>) {
    this.#rack = rack;
    this.#options = options;
    this.#addresses = addresses;
  }

  handles(image: string): boolean {
    return image === talosImage.id;
  }

  async create(
    guest: DemoGuest,
  ): Promise<{ readonly ipAddresses: readonly string[]; readonly message: string }> {
    const address = await this.#ensureNode(guest);
    return { ipAddresses: [address], message: "simulated Talos node in maintenance mode" };
  }

  async start(guest: DemoGuest): Promise<void> {
    await this.#ensureNode(guest);
    const node = this.#rack.node(guest.id);
    if (node.stage === "off") await node.powerOn();
  }

  async stop(guest: DemoGuest): Promise<void> {
    const node = this.#rack.nodes.find(({ spec }) => spec.name === guest.id);
    await node?.powerOff();
  }

  async delete(guest: DemoGuest): Promise<void> {
    await this.#rack.remove(guest.id);
    this.#addresses.delete(guest.id);
    await this.#save();
  }

  async close(): Promise<void> {
    await this.#rack.close();
  }

  /** The node's address, chosen on first use; the node is put into the rack when it is not there. */
  async #ensureNode(guest: DemoGuest): Promise<string> {
    const known = this.#addresses.get(guest.id);
    const address = known ?? this.#freeAddress();
    if (known === undefined) {
      this.#addresses.set(guest.id, address);
      await this.#save();
    }
    if (!this.#rack.nodes.some(({ spec }) => spec.name === guest.id)) {
      try {
        await this.#rack.add(describeMachine({ name: guest.id, address }));
      } catch (error) {
        if (!isCoded(error, "already_exists")) throw error;
      }
    }
    return address;
  }

  #freeAddress(): string {
    const taken = new Set(this.#addresses.values());
    const [a = 127, b = 0, c = 0, d = 0] = this.#options.addressBase.split(".").map(Number);
    for (let index = 0; index < maxMachines; index++) {
      const last = c * 256 + d + index;
      const address = [a, b, Math.floor(last / 256), last % 256].join(".");
      if (!taken.has(address)) return address;
    }
    throw new CodedError("failed_precondition", `the virtual rack is full: it takes ${maxMachines} machines`);
  }

  /** Saves one after the other, each whole. */
  #save(): Promise<void> {
    this.#saving = this.#saving.then(async () => {
      const file = addressesFile(this.#options.statePath);
      await writeFile(`${file}.new`, JSON.stringify(Object.fromEntries(this.#addresses)), { mode: 0o600 });
      await rename(`${file}.new`, file);
    });
    return this.#saving;
  }
}

const addressesFile = (statePath: string): string => path.join(statePath, "addresses.json");

async function readAddresses(file: string): Promise<Map<string, string>> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch {
    return new Map();
  }
  const value: unknown = JSON.parse(text);
  if (!isObject(value))
    throw new CodedError("data_loss", `${file} can't be read: remove the rack's folder to start anew`);
  return new Map(
    Object.entries(value).flatMap(([id, address]) =>
      typeof address === "string" ? [[id, address] as const] : [],
    ),
  );
}

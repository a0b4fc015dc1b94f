/**
 * The disk of a simulated machine: its record, changed one whole step at a time.
 *
 * A change is kept before anybody can see its effect, so that a process that ends in between finds either the old or
 * the new state.
 */
import type { SealedKey } from "./disk-encryption.ts";
import type { MachineRecord } from "./machine-record.ts";

/** See the module's comment. */
export class NodeDisk {
  readonly #keep: (record: MachineRecord) => Promise<void>;
  #record: MachineRecord;

  constructor(record: MachineRecord, keep: (record: MachineRecord) => Promise<void>) {
    this.#record = record;
    this.#keep = keep;
  }

  get record(): MachineRecord {
    return this.#record;
  }

  /** Changes some fields. */
  save(change: Partial<MachineRecord>): Promise<void> {
    return this.#replace({ ...this.#record, ...change });
  }

  /** The system is on the disk now, with the keys of its encrypted volumes. */
  installed(keys: readonly SealedKey[]): Promise<void> {
    return this.save({ installed: true, ...(keys.length === 0 ? {} : { sealedKeys: keys }) });
  }

  /** What was applied in maintenance mode reaches the STATE partition. */
  async keepPending(): Promise<void> {
    const { pendingConfig, ...rest } = this.#record;
    if (pendingConfig !== undefined) await this.#replace({ ...rest, config: pendingConfig });
  }

  /** A staged configuration becomes the one to boot with. */
  async applyStaged(): Promise<void> {
    const { stagedConfig, ...rest } = this.#record;
    if (stagedConfig !== undefined) await this.#replace({ ...rest, config: stagedConfig });
  }

  /** What was written as the next release becomes the one that runs; the one before stays on the disk. */
  async bootNext(): Promise<void> {
    const { nextVersion, talosVersion, ...rest } = this.#record;
    if (nextVersion === undefined) return;
    await this.#replace({ ...rest, talosVersion: nextVersion, previousVersion: talosVersion });
  }

  /** The power is gone, and with it a configuration that was not on the disk yet. */
  async loseMemory(): Promise<void> {
    const { pendingConfig, ...rest } = this.#record;
    if (pendingConfig !== undefined) await this.#replace(rest);
  }

  /** Wipes partitions by label, or everything. Returns whether etcd's data was lost. */
  async wipe(partitions: readonly string[] | undefined): Promise<boolean> {
    const { config, stagedConfig, pendingConfig: _, etcdMemberId, sealedKeys = [], ...disk } = this.#record;
    const isWiped = (label: string): boolean => partitions === undefined || partitions.includes(label);
    await this.#replace({
      ...disk,
      ...(partitions === undefined ? { installed: false, unbootable: true } : {}),
      ...(isWiped("STATE") || config === undefined ? {} : { config }),
      ...(isWiped("STATE") || stagedConfig === undefined ? {} : { stagedConfig }),
      ...(isWiped("EPHEMERAL") || etcdMemberId === undefined ? {} : { etcdMemberId }),
      sealedKeys: sealedKeys.filter(({ volume }) => !isWiped(volume)),
    });
    return etcdMemberId !== undefined && isWiped("EPHEMERAL");
  }

  async #replace(record: MachineRecord): Promise<void> {
    this.#record = record;
    await this.#keep(record);
  }
}

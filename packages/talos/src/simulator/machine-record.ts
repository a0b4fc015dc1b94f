/**
 * What survives when a simulated machine loses power: its disk and its power switch.
 */
import { CodedError, isObject, stringAt } from "@kontinuum/std";
import type { SealedKey } from "./disk-encryption.ts";

/** The disk of a machine. */
export interface MachineRecord {
  /** Power is on. */
  readonly powered: boolean;
  /** The system is on the disk (Talos: a META partition is there). */
  readonly installed: boolean;
  /** Nothing on the disk boots any more: only new media help. */
  readonly unbootable: boolean;
  /** Release on the disk. */
  readonly talosVersion: string;
  /** Release that was written to the disk and boots next. */
  readonly nextVersion?: string;
  /** Release before the last upgrade, still on the disk. */
  readonly previousVersion?: string;
  /** The META partition: values by key, a number in decimal; each character is a byte. */
  readonly meta?: Readonly<Record<string, string>>;
  /**
   * Applied in maintenance mode and on its way to the disk. A loss of power loses it; an end of the process
   * that simulates the machine does not, because the machine would not notice that.
   */
  readonly pendingConfig?: string;
  /** Machine configuration on the STATE partition. */
  readonly config?: string;
  /** Configuration that replaces it at the next boot. */
  readonly stagedConfig?: string;
  /** Keys of encrypted volumes, as a key management service sealed them. */
  readonly sealedKeys?: readonly SealedKey[];
  /** etcd has written to the EPHEMERAL partition; the member it is. */
  readonly etcdMemberId?: string;
}

/** A machine out of its box. */
export function newRecord(talosVersion: string): MachineRecord {
  return { powered: true, installed: false, unbootable: false, talosVersion };
}

/** Reads a stored record. Fails with `data_loss`. */
export function parseRecord(text: string, what: string): MachineRecord {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new CodedError("data_loss", `${what} is not JSON: remove it to start with an empty machine`, {
      cause,
    });
  }
  if (isRecord(value)) return value;
  throw new CodedError(
    "data_loss",
    `${what} is no machine's state: remove it to start with an empty machine`,
  );
}

function isRecord(value: unknown): value is MachineRecord {
  if (!isObject(value)) return false;
  const flags = ["powered", "installed", "unbootable"].every((name) => typeof value[name] === "boolean");
  const texts = [
    "config",
    "pendingConfig",
    "stagedConfig",
    "etcdMemberId",
    "nextVersion",
    "previousVersion",
  ].every((name) => value[name] === undefined || typeof value[name] === "string");
  const keys = value["sealedKeys"];
  const sealed =
    keys === undefined ||
    (Array.isArray(keys) &&
      keys.every((key) =>
        ["volume", "endpoint", "sealed", "digest"].every((name) => stringAt(key, name) !== undefined),
      ));
  const meta = value["meta"];
  const isMeta =
    meta === undefined || (isObject(meta) && Object.values(meta).every((text) => typeof text === "string"));
  return flags && texts && sealed && isMeta && typeof value["talosVersion"] === "string";
}

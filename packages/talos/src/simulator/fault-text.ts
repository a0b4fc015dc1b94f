/**
 * Faults as words, for a command line: `disk-failure`, `node-002:call-delay=200ms`, `*:crash-at=install`.
 */
import { CodedError } from "@kontinuum/std";
import type { CrashPoint, NodeFaults } from "./faults.ts";

type Writable = { -readonly [K in keyof NodeFaults]: NodeFaults[K] };
type Reader = (faults: Writable, value: string | undefined) => void;

const connections = ["refuse", "blackhole", "cut"] as const;
const crashPoints = [
  "apply",
  "install",
  "boot",
  "bootstrap",
  "reset",
  "upgrade",
] as const satisfies readonly CrashPoint[];

/** Longest delay and greatest skew that can be asked for: ten years. */
const durationMaxMs = 10 * 365 * 24 * 3_600_000;
const units: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function flag(set: (faults: Writable) => void): Reader {
  return (faults, value) => {
    if (value !== undefined) throw new TypeError("takes no value");
    set(faults);
  };
}

function word<T extends string>(allowed: readonly T[], set: (faults: Writable, value: T) => void): Reader {
  return (faults, value) => {
    const found = allowed.find((candidate) => candidate === value);
    if (found === undefined) throw new TypeError(`is one of ${allowed.join(", ")}`);
    set(faults, found);
  };
}

function duration(isSigned: boolean, set: (faults: Writable, ms: number) => void): Reader {
  return (faults, value) => {
    const [, sign, number, unit] = /^(-?)(\d{1,9})(ms|s|m|h|d)$/.exec(value ?? "") ?? [];
    const ms = Number(number) * (units[unit ?? ""] ?? Number.NaN) * (sign === "-" ? -1 : 1);
    if (!(Math.abs(ms) <= durationMaxMs) || (ms < 0 && !isSigned))
      throw new TypeError(`is a duration such as 200ms or 5m${isSigned ? ", which may be negative" : ""}`);
    set(faults, ms);
  };
}

function methods(set: (faults: Writable, names: readonly string[]) => void): Reader {
  return (faults, value) => {
    const names = (value ?? "").split("+");
    if (!names.every((name) => /^[A-Z][A-Za-z0-9]{0,63}$/.test(name)))
      throw new TypeError("is one or more methods joined by +, such as Version+Reset");
    set(faults, names);
  };
}

const readers: Readonly<Record<string, Reader>> = {
  connections: word(connections, (faults, value) => (faults.connections = value)),
  "handshake-delay": duration(false, (faults, ms) => (faults.handshakeDelayMs = ms)),
  "call-delay": duration(false, (faults, ms) => (faults.callDelayMs = ms)),
  "wrong-certificate": flag((faults) => (faults.wrongCertificate = true)),
  "crash-at": word(crashPoints, (faults, value) => (faults.crashAt = value)),
  "lose-reply": methods((faults, names) => (faults.loseReply = names)),
  "fail-calls": methods((faults, names) => (faults.failCalls = names)),
  "disk-failure": flag((faults) => (faults.diskFailure = true)),
  "clock-skew": duration(true, (faults, ms) => (faults.clockSkewMs = ms)),
  "time-not-synced": flag((faults) => (faults.timeNotSynced = true)),
};

/** The words there are. */
export const faultNames: readonly string[] = Object.keys(readers);

/**
 * Faults by machine name, `*` for all, from words of the form `[<machine>:]<fault>[=<value>]`. Fails with
 * `invalid_argument` naming the word and what it could be.
 */
export function parseFaults(words: readonly string[]): Record<string, NodeFaults> {
  const all = new Map<string, Writable>();
  for (const text of words) {
    const [, machine = "*", name = "", value] = /^(?:([^:=]*):)?([^:=]*)(?:=(.*))?$/s.exec(text) ?? [];
    const reader = Object.hasOwn(readers, name) ? readers[name] : undefined;
    const shown = JSON.stringify(text.slice(0, 100));
    if (!reader || machine === "") {
      throw new CodedError(
        "invalid_argument",
        `fault ${shown} is not [machine:]fault[=value] with one of ${faultNames.join(", ")}`,
      );
    }
    const faults = all.get(machine) ?? {};
    all.set(machine, faults);
    try {
      reader(faults, value);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      throw new CodedError("invalid_argument", `fault ${shown}: ${name} ${error.message}`);
    }
  }
  return Object.fromEntries(all);
}

/**
 * Measuring for the storage benchmarks: rates, latencies, CPU per operation, and a table of them.
 */
import { fdatasyncSync, closeSync, openSync, writeSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { serverCores, serverCpu } from "./cores.ts";

/** One measurement. */
export interface Measured {
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Microseconds of this process's CPU. */
  readonly cpuPerOperation: number;
  /** Microseconds of the servers' CPU; `undefined` without any. */
  readonly serverCpu: number | undefined;
  /** Milliseconds that the event loop was late, 99th percentile. */
  readonly loopLate: number;
  /** What was used up: the core of this process, those of the servers, or neither (then it waited for the disk, mostly). */
  readonly limit: "own core" | "server's core" | "waits";
}

/** Share of a core from which on it is the limit. */
const usedUp = 0.9;

/** Runs `operation` `count` times by `workers` at once. */
export async function measure(
  count: number,
  workers: number,
  operation: (i: number) => Promise<unknown>,
): Promise<Measured> {
  const latencies: number[] = [];
  let next = 0;
  const late = monitorEventLoopDelay({ resolution: 1 });
  late.enable();
  const server = serverCpu();
  const cpu = process.cpuUsage();
  const started = performance.now();
  await Promise.all(
    Array.from({ length: workers }, async () => {
      while (next < count) {
        const i = next++;
        const at = performance.now();
        await operation(i);
        latencies.push(performance.now() - at);
      }
    }),
  );
  const elapsed = performance.now() - started;
  const used = process.cpuUsage(cpu);
  const here = used.user + used.system;
  const there = server === undefined ? undefined : (serverCpu() ?? server) - server;
  late.disable();
  latencies.sort((a, b) => a - b);
  return {
    perSecond: (count / elapsed) * 1_000,
    p50: latencies[Math.floor(count * 0.5)] ?? 0,
    p99: latencies[Math.floor(count * 0.99)] ?? 0,
    cpuPerOperation: here / count,
    serverCpu: there === undefined ? undefined : there / count,
    loopLate: Math.max(0, late.percentile(99) / 1e6 - 1),
    limit:
      here > usedUp * elapsed * 1_000
        ? "own core"
        : (there ?? 0) > usedUp * serverCores * elapsed * 1_000
          ? "server's core"
          : "waits",
  };
}

/** Median milliseconds of `rounds` runs. */
export async function median(rounds: number, run: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < rounds; i++) {
    const at = performance.now();
    await run();
    times.push(performance.now() - at);
  }
  times.sort((a, b) => a - b);
  return times[Math.floor(rounds / 2)] ?? 0;
}

/** What the disk itself costs: median milliseconds of an append of 4 KiB and its flush. */
export function flushCost(folder: string): number {
  const file = openSync(`${folder}/flush`, "w");
  const block = Buffer.alloc(4_096, 1);
  const times: number[] = [];
  for (let i = 0; i < 200; i++) {
    const at = performance.now();
    writeSync(file, block);
    fdatasyncSync(file);
    times.push(performance.now() - at);
  }
  closeSync(file);
  times.sort((a, b) => a - b);
  return times[100] ?? 0;
}

/** Prints rows under a heading, columns aligned. */
export function table(
  heading: string,
  columns: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): void {
  const text = [columns, ...rows].map((row) =>
    row.map((cell) => (typeof cell === "number" ? format(cell) : cell)),
  );
  const widths = columns.map((_, i) => Math.max(...text.map((row) => row[i]?.length ?? 0)));
  process.stdout.write(`\n${heading}\n`);
  for (const [n, row] of text.entries()) {
    process.stdout.write(
      `${row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join("  ")}\n`,
    );
    if (n === 0) process.stdout.write(`${widths.map((width) => "-".repeat(width)).join("  ")}\n`);
  }
}

function format(value: number): string {
  if (value >= 1_000) return Math.round(value).toLocaleString("en");
  return value >= 10 ? value.toFixed(1) : value.toPrecision(2);
}

/** One line about the machine and how busy it is, so that figures can be judged. */
export function machine(): string {
  const [load = 0] = loadavg();
  return `${cpus().length} × ${cpus()[0]?.model ?? "?"}, Node ${process.version}, load ${load.toFixed(1)} when started`;
}

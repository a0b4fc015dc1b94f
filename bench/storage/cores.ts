/**
 * Which cores do what in a benchmark, and what the other side of it costs: servers that this process started get the cores
 * beside the first, which this process keeps. Linux with `taskset`; elsewhere nothing is pinned and servers' CPU is not told.
 */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/** Cores that servers have while they are separated. */
export const serverCores = Math.max(1, availableParallelism() - 1);

/** Servers go to their cores, this process to its own. Call it when they run; {@link together} before more are started. */
export function separate(): void {
  if (availableParallelism() < 2) return;
  for (const pid of descendants()) pin(pid, `1-${serverCores}`);
  pin(process.pid, "0");
}

/** This process, and what it starts, may run anywhere again. */
export function together(): void {
  pin(process.pid, `0-${serverCores}`);
}

/** Microseconds of CPU that the servers have used; `undefined` without any. */
export function serverCpu(): number | undefined {
  const pids = descendants();
  if (pids.length === 0) return undefined;
  let nanoseconds = 0;
  for (const pid of pids)
    for (const thread of list(`/proc/${pid}/task`))
      nanoseconds += Number(text(`/proc/${pid}/task/${thread}/schedstat`).split(" ")[0]);
  return nanoseconds / 1_000;
}

function pin(pid: number, cores: string): void {
  spawnSync("taskset", ["-acp", cores, String(pid)]);
}

/** Processes below this one. */
function descendants(): number[] {
  const parents = new Map<number, number>();
  for (const name of list("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    // "pid (command) state parent …": the command may hold anything, parentheses too.
    const stat = text(`/proc/${name}/stat`);
    parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]));
  }
  const isBelow = (pid: number): boolean => {
    const parent = parents.get(pid);
    return parent !== undefined && (parent === process.pid || isBelow(parent));
  };
  return [...parents.keys()].filter(isBelow);
}

/** Both answer with nothing for a process that is gone. */
function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function text(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

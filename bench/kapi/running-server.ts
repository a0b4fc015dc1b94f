/**
 * The benchmarked server as its bench sees it: started, asked for what it used, sampled, stopped.
 */
import { fork, type ChildProcess } from "node:child_process";
import path from "node:path";

/** What a server used so far. */
export interface Usage {
  /** Resident bytes, as the system counts them: nothing is collected for it. */
  readonly memory: number;
  /** Processor time of all threads, in microseconds. */
  readonly cpu: number;
}

const root = path.resolve(import.meta.dirname, "../..");

/** A server in its own process, started as `bin/kontinuum` starts one: compiled code cached, a small young generation. */
export class RunningServer {
  readonly port: number;
  /** From opening the store to serving, in milliseconds. */
  readonly startMs: number;
  /** From the process's start to serving, in milliseconds. */
  readonly bootMs: number;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, started: { port: number; startMs: number; bootMs: number }) {
    this.#child = child;
    this.port = started.port;
    this.startMs = started.startMs;
    this.bootMs = started.bootMs;
  }

  /** Starts one on a store's URL. */
  static start(store: string): Promise<RunningServer> {
    const child = fork(path.join(import.meta.dirname, "server-process.ts"), [store], {
      execArgv: ["--max-semi-space-size=8", "--disable-warning=ExperimentalWarning"],
      env: { NODE_COMPILE_CACHE: path.join(root, ".cache/compile"), ...process.env },
    });
    return new Promise((resolve) =>
      child.once("message", (started: { port: number; startMs: number; bootMs: number }) =>
        resolve(new RunningServer(child, started)),
      ),
    );
  }

  #ask<T>(question: string): Promise<T> {
    return new Promise((resolve) => {
      this.#child.once("message", (answer: T) => resolve(answer));
      this.#child.send(question);
    });
  }

  async usage(): Promise<Usage> {
    const { memory, cpu } = await this.#ask<{ memory: number; cpu: NodeJS.CpuUsage }>("memory");
    return { memory, cpu: cpu.user + cpu.system };
  }

  /** Runs `work`, sampled into `<folder>/<name>.cpuprofile` when there is a folder. */
  async sampled<T>(folder: string | undefined, name: string, work: () => Promise<T>): Promise<T> {
    if (folder === undefined) return work();
    await this.#ask("profile");
    const result = await work();
    await this.#ask(`profiled:${path.resolve(folder, `${name}.cpuprofile`)}`);
    return result;
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.#child.once("exit", () => resolve());
      this.#child.send("stop");
    });
  }
}

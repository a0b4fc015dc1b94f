/**
 * Reads YAML texts of any permitted size: short ones here, longer ones in a thread of their own.
 *
 * The thread is started when it is first needed, ends when it has been idle for a while or takes too long, and does
 * not keep the process alive; it is one for the whole process and so keeps the process's own time. Texts wait for it in order, a bounded number of them.
 */
import { Worker } from "node:worker_threads";
import { systemClock, type Timer } from "@kontinuum/std";
import { badRequest, tooManyRequests, type StatusError } from "../status/status.ts";
import { maxYamlBytes, parseYaml, type YamlBody } from "./yaml.ts";

/** Texts up to this length are read at once: less than about ten milliseconds. */
const shortLength = 2 * 1024;
/** Texts that wait for the thread at most. */
const maxWaiting = 64;
/** Longest time for one text and everything before it. */
const limitMs = 20_000;
const idleMs = 30_000;

interface Waiting {
  resolve(body: YamlBody): void;
  reject(error: StatusError): void;
}

/** The one thread with its queue. */
class YamlThread {
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #next = 0;
  #watchdog: Timer | undefined;

  read(text: string): Promise<YamlBody> {
    if (this.#waiting.size >= maxWaiting) throw tooManyRequests();
    const worker = this.#start();
    const id = this.#next++;
    const answer = new Promise<YamlBody>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    worker.postMessage({ id, text });
    this.#arm(limitMs);
    return answer;
  }

  #start(): Worker {
    if (this.#worker) return this.#worker;
    const worker = new Worker(new URL("./yaml-thread.ts", import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: 256 },
    });
    worker.unref();
    worker.on(
      "message",
      (message: { readonly id: number; readonly body?: YamlBody; readonly error?: string }) => {
        const waiting = this.#waiting.get(message.id);
        this.#waiting.delete(message.id);
        if (message.body) waiting?.resolve(message.body);
        else waiting?.reject(badRequest(message.error ?? "unreadable YAML"));
        this.#arm(this.#waiting.size > 0 ? limitMs : idleMs);
      },
    );
    worker.on("error", () => this.#end());
    worker.on("exit", () => this.#end());
    this.#worker = worker;
    return worker;
  }

  /** Ends the thread after a while: it is idle, or it takes too long. */
  #arm(delayMs: number): void {
    this.#watchdog?.clear();
    this.#watchdog = systemClock.timer(delayMs, () => this.#end());
  }

  #end(): void {
    const worker = this.#worker;
    this.#worker = undefined;
    this.#watchdog?.clear();
    for (const waiting of this.#waiting.values())
      waiting.reject(badRequest("the YAML body takes too long to read: send JSON"));
    this.#waiting.clear();
    void worker?.terminate();
  }
}

const thread = new YamlThread();

/** Reads one YAML document. Fails with 400 and, when too many wait, 429. */
export function readYaml(text: string): YamlBody | Promise<YamlBody> {
  if (text.length <= shortLength || text.length > maxYamlBytes) return parseYaml(text);
  return thread.read(text);
}

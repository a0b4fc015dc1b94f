/**
 * A krytond as a real process, for tests that kill it.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";

const program = new URL("../../bin/krytond", import.meta.url).pathname;

/** A running krytond. */
export class KrytondProcess {
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #exited: Promise<number | null>;

  private constructor(child: ChildProcess, url: string, exited: Promise<number | null>) {
    this.#child = child;
    this.url = url;
    this.#exited = exited;
  }

  /** Starts one and waits until it serves. */
  static start(env: Readonly<Record<string, string>>): Promise<KrytondProcess> {
    const child = spawn(program, [], {
      env: { PATH: process.env["PATH"] ?? "", KRYTON_ADDR: "127.0.0.1:0", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let errors = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
    const exited = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
    return new Promise((resolve, reject) => {
      createInterface({ input: child.stdout }).on("line", (line) => {
        const entry: unknown = JSON.parse(line);
        if (typeof entry !== "object" || entry === null) return;
        if (
          "msg" in entry &&
          entry.msg === "krytond serves" &&
          "url" in entry &&
          typeof entry.url === "string"
        ) {
          resolve(new KrytondProcess(child, entry.url, exited));
        }
      });
      void exited.then((code) => reject(new Error(`krytond ended with ${code}: ${errors}`)));
    });
  }

  /** Id of the process. */
  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Kills it without warning. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }

  /** Asks it to stop; the result is the exit status. */
  async stop(): Promise<number | null> {
    this.#child.kill("SIGTERM");
    return this.#exited;
  }
}

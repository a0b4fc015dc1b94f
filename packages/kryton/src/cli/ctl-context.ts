/**
 * What the commands of `krytonctl` share: where to call, common options, waiting, printing.
 */
import { InvalidArgumentError, Option } from "@commander-js/extra-typings";
import { stringAt, systemClock } from "@kontinuum/std";
import { jsonText, Target, type Answer } from "./ctl-http.ts";
import { itemsOf, table, type Column } from "./ctl-tables.ts";
import { ExitWith, type Io } from "./io.ts";

/** How long `--wait` waits, seconds, unless `--timeout` says otherwise. */
export const waitSeconds = 600;
const pollMs = 500;
const movingStates = ["pending", "provisioning", "starting", "stopping", "deleting", "migrating"];

/** Forms of output. */
export type Output = "json" | "table";

/** A whole number of a flag. */
export function whole(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError("Not a whole number.");
  return Number(text);
}

/** Collects a flag that may be repeated. */
export function collect(value: string, all: string[]): string[] {
  return [...all, value];
}

/** One run of the program. */
export class Context {
  readonly io: Io;
  readonly target: Target;

  constructor(io: Io) {
    this.io = io;
    this.target = new Target(io);
  }

  output(): Option<"-o, --output <format>", undefined, "json", undefined, false, Output> {
    return new Option("-o, --output <format>", "json or table")
      .choices(["json", "table"] as const)
      .default("json" as const);
  }

  project() {
    return new Option("--project <name>", "project of the machine").default(
      this.target.project,
      "KRYTON_PROJECT",
    );
  }

  wait() {
    return new Option("--wait", "wait until it is where it should be");
  }

  timeout() {
    return new Option("--timeout <seconds>", "limit of --wait").argParser(whole).default(waitSeconds);
  }

  /** How answers of a command are printed. */
  show(format: Output, layout: readonly Column[]): (answer: Answer) => string {
    return (answer) => (format === "table" ? table(layout, itemsOf(answer.json)) : jsonText(answer));
  }

  /** Reads the machine again until it is not on its way any more; one that was deleted is where it should be. */
  async settle(
    first: Answer,
    project: string,
    seconds: number,
    id = stringAt(first.json, "id"),
  ): Promise<Answer> {
    const isDeletion = first.status === 204;
    const moving = (answer: Answer): boolean =>
      isDeletion ? answer.status !== 404 : movingStates.includes(stringAt(answer.json, "state") ?? "");
    let answer = first;
    const deadline = systemClock.monotonic() + seconds * 1000;
    while (answer.status < 400 && id !== undefined && moving(answer)) {
      if (systemClock.monotonic() > deadline) {
        this.io.err(
          `krytonctl: machine ${id} is still ${stringAt(answer.json, "state") ?? "there"} after ${seconds} s\n`,
        );
        this.target.finish(answer);
        throw new ExitWith(1);
      }
      if (answer !== first || !isDeletion) await systemClock.sleep(pollMs);
      answer = await this.target.call("GET", inProject(machinePath(id), project));
      if (isDeletion && stringAt(answer.json, "state") === "failed") return { ...answer, status: 409 };
    }
    return isDeletion && answer.status === 404 ? first : answer;
  }
}

/** A path with its project. */
export function inProject(path: string, name: string): string {
  return `${path}${path.includes("?") ? "&" : "?"}project=${encodeURIComponent(name)}`;
}

/** The path of a machine. */
export function machinePath(id: string, rest = ""): string {
  return `/api/v1/machines/${encodeURIComponent(id)}${rest}`;
}

/** Examples under a command's help. */
export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  krytonctl ${line}\n`).join("")}`;
}

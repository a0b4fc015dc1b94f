/**
 * What a command line tool touches, as a parameter.
 */
import type { Random } from "@kontinuum/std";
import type { Environment } from "../config/values.ts";

/** Status when the reader of the output has gone: 128 and the number of SIGPIPE, as shells have it. */
const readerGone = 141;

/** Output, environment, randomness. */
export interface Io {
  out(text: string): void;
  err(text: string): void;
  readonly env: Environment;
  readonly random: Random;
}

/**
 * The streams of this process. A reader that went away (`krytonctl list | head`) ends the program without a word, with
 * the status a shell gives for that; an output that cannot be written is named on standard error, with status 1.
 */
export function processStreams(program: string): Pick<Io, "out" | "err"> {
  const fail = (error: NodeJS.ErrnoException): never => {
    if (error.code === "EPIPE") process.exit(readerGone);
    process.stderr.write(`${program}: standard output cannot be written: ${error.message}\n`);
    process.exit(1);
  };
  process.stdout.on("error", fail);
  process.stderr.on("error", () => process.exit(1));
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
  };
}

/** Ends a command with a status; whatever there is to say was said. */
export class ExitWith extends Error {
  readonly status: number;
  constructor(status: number) {
    super(`exit ${status}`);
    this.name = "ExitWith";
    this.status = status;
  }
}

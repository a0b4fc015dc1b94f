/**
 * What a command line tool touches, as a parameter.
 */
import type { Random } from "@kontinuum/std";
import type { Environment } from "../config/values.ts";

/** Output, environment, randomness. */
export interface Io {
  out(text: string): void;
  err(text: string): void;
  readonly env: Environment;
  readonly random: Random;
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

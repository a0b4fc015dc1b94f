/**
 * One line of progress on a terminal, redrawn a few times a second; nothing when it is not one.
 */
import type { Clock } from "@kontinuum/std";
import type { Io } from "./io.ts";

const everyMs = 200;
const width = 30;

/** Draws how far a download is, on standard error. */
export class ProgressLine {
  readonly #io: Io;
  readonly #clock: Clock;
  readonly #terminal: boolean;
  #drawnAt = -Infinity;
  #drawn = false;

  constructor(io: Io, clock: Clock, terminal: boolean) {
    this.#io = io;
    this.#clock = clock;
    this.#terminal = terminal;
  }

  show(bytes: number, total: number | undefined): void {
    const now = this.#clock.monotonic();
    if (!this.#terminal || (now - this.#drawnAt < everyMs && bytes !== total)) return;
    this.#drawnAt = now;
    this.#drawn = true;
    const mib = (n: number): string => (n / 1024 ** 2).toFixed(1);
    if (total === undefined || total === 0) return this.#io.err(`\r${mib(bytes)} MiB`);
    const filled = Math.round((bytes / total) * width);
    const bar = "#".repeat(filled).padEnd(width, ".");
    this.#io.err(`\r[${bar}] ${Math.floor((bytes / total) * 100)} % of ${mib(total)} MiB`);
  }

  end(): void {
    if (this.#drawn) this.#io.err("\n");
  }
}

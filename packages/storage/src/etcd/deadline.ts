/**
 * The deadline that a caller gives its call ("Timeout" in gRPC's public document "gRPC over HTTP2").
 */
import type { IncomingHttpHeaders } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { systemClock, type Timer } from "@kontinuum/std";

/** Milliseconds of each unit. */
const units: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};

/** When a call must be over. */
export class Deadline {
  readonly #until: number | undefined;
  #timer: Timer | undefined;

  /** Fails with `InvalidArgument` when the header is no timeout. */
  constructor(headers: IncomingHttpHeaders) {
    const ms = timeoutOf(headers["grpc-timeout"]);
    this.#until = ms === undefined ? undefined : systemClock.monotonic() + ms;
  }

  /** Calls `late` once the time is over, unless {@link clear} comes first. */
  start(late: (error: ConnectError) => void): void {
    const left = this.leftMs();
    if (left === undefined) return;
    this.#timer = systemClock.timer(left, () =>
      late(new ConnectError("the deadline is over", Code.DeadlineExceeded)),
    );
  }

  clear(): void {
    this.#timer?.clear();
  }

  /** Milliseconds left, not below 0; `undefined` without a deadline. */
  leftMs(): number | undefined {
    return this.#until === undefined ? undefined : Math.max(0, this.#until - systemClock.monotonic());
  }
}

function timeoutOf(header: string | string[] | undefined): number | undefined {
  if (header === undefined) return undefined;
  const [, digits, unit = ""] = /^(\d{1,8})([HMSmun])$/.exec(String(header)) ?? [];
  const ms = units[unit];
  if (digits === undefined || ms === undefined)
    throw new ConnectError(
      "grpc-timeout must be 1 to 8 digits and one of the units H, M, S, m, u, n",
      Code.InvalidArgument,
    );
  return Number(digits) * ms;
}

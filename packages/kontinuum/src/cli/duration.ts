/**
 * Durations on the command line, as Go programs write them: `90s`, `15m`, `1h30m`.
 */
import { CodedError } from "@kontinuum/std";

const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;

/** Milliseconds of a duration. Fails with `invalid_argument`. */
export function parseDuration(text: string): number {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)];
  if (text === "" || parts.map(([whole]) => whole).join("") !== text) {
    throw new CodedError(
      "invalid_argument",
      `${JSON.stringify(text)} is not a duration such as 90s, 15m or 1h30m`,
    );
  }
  return parts.reduce((sum, [, amount = "0", unit]) => sum + Number(amount) * units[unitOf(unit)], 0);
}

function unitOf(text: string | undefined): keyof typeof units {
  return text === "ms" || text === "s" || text === "h" ? text : "m";
}

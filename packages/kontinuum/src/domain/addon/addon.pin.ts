/**
 * Pinning a fetched chart: an addon remembers the digest of what it installed, and the same reference must bring the same
 * bytes ever after. Pure.
 *
 * The pin is an annotation and no status, because a zone may write the status of its addons.
 */
import { CodedError } from "@kontinuum/std";
import { annotations, type Addon } from "../../kinds/index.ts";
import type { FetchedChart } from "./chart-fetch.ts";

/** The pin of an addon: `sha256:<hex> <reference>`, or `undefined`. */
export const pinOf = ({ metadata }: Addon): string | undefined =>
  metadata.annotations?.[annotations.chartDigest];

/** The pin of what was fetched. Fails with `failed_precondition` when the same reference brought something else before. */
export function pinFor(addon: Addon, { digest, reference }: FetchedChart): string {
  const [was, ...rest] = (pinOf(addon) ?? "").split(" ");
  if (rest.join(" ") === reference && was !== digest) {
    throw new CodedError(
      "failed_precondition",
      `the chart ${reference} is ${digest} now and was ${was ?? ""} when it was installed; if its publisher meant that, remove the annotation ${annotations.chartDigest} to accept it`,
    );
  }
  return `${digest} ${reference}`;
}

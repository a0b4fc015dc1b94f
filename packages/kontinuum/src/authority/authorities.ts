/**
 * Which of the hub's authorities signs, which are trusted, and when a new one is due. Pure.
 *
 * A new authority is published long before it signs, so whoever trusts this hub has heard of it by then and nobody
 * has to act together with anybody.
 */
import { X509Certificate } from "node:crypto";

/** A certificate authority, PEM. */
export interface Authority {
  readonly crt: string;
  readonly key: string;
}

const dayMs = 86_400_000;
/** Life of an authority, milliseconds. */
export const authorityLifeMs = 3650 * dayMs;
/** With less left than this on every authority a new one is made, and published from then on. */
export const publishBeforeMs = 730 * dayMs;
/** With less left than this an authority signs no longer. */
export const signBeforeMs = 365 * dayMs;

/** Milliseconds an authority has left; negative once it expired. */
const leftMs = ({ crt }: Authority, nowMs: number): number =>
  Date.parse(new X509Certificate(crt).validTo) - nowMs;

/** Those that are still good, oldest first. */
export const goodOf = (known: readonly Authority[], nowMs: number): readonly Authority[] =>
  known.filter((one) => leftMs(one, nowMs) > 0);

/** Whether another authority must be made now. */
export const isAuthorityDue = (known: readonly Authority[], nowMs: number): boolean =>
  known.every((one) => leftMs(one, nowMs) < publishBeforeMs);

/** Who signs: the oldest that has long enough left, because it is the one most have heard of. */
export const signerOf = (known: readonly Authority[], nowMs: number): Authority | undefined =>
  known.find((one) => leftMs(one, nowMs) >= signBeforeMs) ?? known.at(-1);

/** PEM of all that must be trusted. */
export const bundleOf = (known: readonly Authority[]): string => known.map(({ crt }) => crt).join("");

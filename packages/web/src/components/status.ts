/**
 * A status is always shape, colour and word. The glyph is hidden from screen readers; the word carries the meaning.
 */
import { html, raw, type Html } from "../html.ts";

/** The twelve tones; each says one thing and has one shape. */
export const tones = [
  "ok",
  "busy",
  "wait",
  "warn",
  "bad",
  "unknown",
  "held",
  "leaving",
  "paused",
  "off",
  "free",
  "late",
] as const;

/** One of {@link tones}. */
export type Tone = (typeof tones)[number];

/** A word with its tone, e.g. `{ word: "Degraded", tone: "warn" }`. */
export interface Status {
  readonly word: string;
  readonly tone: Tone;
}

/** Worst first: the order in which lists put what needs a look. */
const severity: readonly Tone[] = [
  "bad",
  "warn",
  "late",
  "unknown",
  "busy",
  "wait",
  "leaving",
  "held",
  "paused",
  "off",
  "free",
  "ok",
];

/** Negative when `a` is worse than `b`. */
export function compareTones(a: Tone, b: Tone): number {
  return severity.indexOf(a) - severity.indexOf(b);
}

/** Whether somebody has to look. */
export function needsAttention(tone: Tone): boolean {
  return tone === "bad" || tone === "warn" || tone === "late" || tone === "unknown";
}

const ring = (colour: string): string =>
  `<circle cx="6" cy="6" r="4.4" fill="none" stroke="var(--${colour})" stroke-width="1.4"/>`;

const shapes: Readonly<Record<Tone, string>> = {
  ok: '<circle cx="6" cy="6" r="4.5" fill="var(--ok)"/>',
  busy:
    '<circle cx="6" cy="6" r="4.4" fill="none" stroke="var(--busy)" stroke-opacity=".3" stroke-width="1.6"/>' +
    '<path class="turning" d="M6 1.6A4.4 4.4 0 0 1 10.4 6" fill="none" stroke="var(--busy)" stroke-width="1.6" stroke-linecap="round"/>',
  wait: `${ring("busy")}<path d="M6 3.6V6l1.7 1.2" fill="none" stroke="var(--busy)" stroke-width="1.3" stroke-linecap="round"/>`,
  warn:
    '<path d="M6 1 11.3 10.6H.7Z" fill="var(--warn)" stroke="var(--warn)" stroke-linejoin="round"/>' +
    '<path d="M6 4.3v3" stroke="var(--surface)" stroke-width="1.3" stroke-linecap="round"/><circle cx="6" cy="9" r=".75" fill="var(--surface)"/>',
  bad:
    '<rect x="1" y="1" width="10" height="10" rx="2" fill="var(--bad)"/>' +
    '<path d="m4 4 4 4m0-4-4 4" stroke="var(--surface)" stroke-width="1.4" stroke-linecap="round"/>',
  unknown:
    '<path d="M3.9 4.2a2.1 2.1 0 1 1 3 1.9c-.6.3-.9.7-.9 1.4" fill="none" stroke="var(--ink-3)" stroke-width="1.5" stroke-linecap="round"/>' +
    '<circle cx="6" cy="9.9" r=".9" fill="var(--ink-3)"/>',
  held:
    '<rect x="1.8" y="5.2" width="8.4" height="5.8" rx="1.3" fill="var(--held)"/>' +
    '<path d="M3.7 5.2V3.7a2.3 2.3 0 0 1 4.6 0v1.5" fill="none" stroke="var(--held)" stroke-width="1.4"/>',
  leaving: `${ring("ink-3")}<path d="M3.9 6h4.2" stroke="var(--ink-3)" stroke-width="1.4" stroke-linecap="round"/>`,
  paused: `${ring("ink-3")}<path d="M4.9 4.4v3.2M7.1 4.4v3.2" stroke="var(--ink-3)" stroke-width="1.2" stroke-linecap="round"/>`,
  off: ring("ink-3"),
  free: '<rect x="3.5" y="3.5" width="5" height="5" rx="1" fill="none" stroke="var(--ink-3)" stroke-width="1.2"/>',
  late:
    '<circle cx="6" cy="6" r="4.4" fill="none" stroke="var(--warn)" stroke-width="1.4"/>' +
    '<path d="M6 3.6V6l1.7 1.2" fill="none" stroke="var(--warn)" stroke-width="1.3" stroke-linecap="round"/>',
};

/** The 12 px shape of a tone. */
export function glyph(tone: Tone): Html {
  return raw(`<svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">${shapes[tone]}</svg>`);
}

/** Glyph and word without a ground: in tables, trees and lists. */
export function status({ word, tone }: Status): Html {
  return html`<span class="status tone-${tone}">${glyph(tone)}${word}</span>`;
}

/** Glyph and word on a soft ground: once per page, beside the title. */
export function statusChip({ word, tone }: Status): Html {
  return html`<span class="status chip tone-${tone}">${glyph(tone)}${word}</span>`;
}

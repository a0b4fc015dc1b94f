/**
 * Ages and instants. The server sends instants; the page lets ages tick.
 */
import { html, type Html } from "../html.ts";

/** The contract's short form: `-` for none, then `s`, `m`, `h`, `d`. */
export function shortAge(ageMs: number | undefined): string {
  if (ageMs === undefined || !Number.isFinite(ageMs)) return "-";
  const seconds = Math.max(0, Math.floor(ageMs / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

/** An age that ticks in the page; the full time stands in the title. `suffix` such as ` ago`. */
export function age(instant: string | undefined, nowMs: number, suffix = ""): Html {
  const at = instant === undefined ? Number.NaN : Date.parse(instant);
  if (instant === undefined || Number.isNaN(at)) return html`-`;
  return html`<time datetime="${instant}" title="${instant}" data-age="${suffix}"
    >${shortAge(nowMs - at)}${suffix}</time
  >`;
}

/**
 * The shapes the topology picture is drawn with: text, boxes, joints, cells and what they mean.
 */
import type { Tone } from "./components/status.ts";

/** One machine. */
export interface TopologyCell {
  readonly id: string;
  readonly href: string;
  readonly title: string;
  readonly tone: Tone;
}

/** Sizes of cells, pixels: a worker's or unclaimed machine's, a control-plane machine's, and the gap between. */
export const cell = { size: 12, control: 14, gap: 4 } as const;

/** Text as it may stand in SVG. */
export function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** A line of text; `content` is SVG already. `fill` and `size` in the kit's colour names and pixels. */
export function text(
  x: number,
  y: number,
  content: string,
  options: { size?: number; weight?: number; fill?: string; anchor?: string } = {},
): string {
  const { size = 13, weight = 400, fill = "ink", anchor = "start" } = options;
  return `<text x="${x}" y="${y}" font-size="${size}" font-weight="${weight}" fill="var(--${fill})" text-anchor="${anchor}">${content}</text>`;
}

/** A joint of lines. */
export const node = (x: number, y: number): string =>
  `<rect x="${x - 3}" y="${y - 3}" width="6" height="6" fill="var(--canvas)" stroke="var(--ink-3)" stroke-width="1.25"/>`;

/** A box with round corners. */
export const box = (
  x: number,
  y: number,
  width: number,
  height: number,
  stroke = "line",
  dash = "",
): string =>
  `<rect x="${x + 0.5}" y="${y + 0.5}" width="${width - 1}" height="${height - 1}" rx="8" fill="var(--surface)" stroke="var(--${stroke})"${dash ? ` stroke-dasharray="${dash}"` : ""}/>`;

/** The sign of a tone in a cell: a quiet outline when healthy. */
function cellSign(tone: Tone, x: number, y: number, size: number): string {
  const at = (dx: number, dy: number): string => `${x + (dx * size) / 12} ${y + (dy * size) / 12}`;
  const frame = (fill: string, stroke: string, extra = ""): string =>
    `<rect x="${x + 0.6}" y="${y + 0.6}" width="${size - 1.2}" height="${size - 1.2}" rx="2.4" fill="var(--${fill})" stroke="var(--${stroke})" stroke-width="1.2"${extra}/>`;
  const line = (d: string, colour: string): string =>
    `<path d="${d}" fill="none" stroke="var(--${colour})" stroke-width="1.4" stroke-linecap="round"/>`;
  const drawn: Readonly<Record<Tone, () => string>> = {
    ok: () => frame("ok-soft", "cell"),
    busy: () => frame("busy-soft", "busy") + line(`M${at(6, 3)}a3 3 0 0 1 3 3`, "busy"),
    wait: () => frame("surface", "busy") + line(`M${at(6, 3.6)}V${y + size / 2}l2 1.4`, "busy"),
    warn: () => frame("warn", "warn") + line(`M${at(6, 3.2)}v2.8M${at(6, 8.8)}v.1`, "surface"),
    late: () => frame("surface", "warn") + line(`M${at(6, 3.6)}V${y + size / 2}l2 1.4`, "warn"),
    bad: () => frame("bad", "bad") + line(`M${at(4, 4)}l4 4m0-4l-4 4`, "surface"),
    held: () => frame("held", "held") + line(`M${at(4.2, 6.6)}h3.6`, "surface"),
    unknown: () => frame("surface", "ink-3", ' stroke-dasharray="2 2"'),
    leaving: () => frame("surface", "off") + line(`M${at(4, 6)}h4`, "ink-3"),
    paused: () => frame("surface", "off") + line(`M${at(4.8, 4.4)}v3.2M${at(7.2, 4.4)}v3.2`, "ink-3"),
    off: () => frame("surface", "off") + line(`M${at(4, 6)}h4`, "ink-3"),
    free: () =>
      `<rect x="${x + 3.5}" y="${y + 3.5}" width="5" height="5" rx="1" fill="none" stroke="var(--ink-3)"/>`,
  };
  return drawn[tone]();
}

/** One machine, as a link. */
export function drawCell(item: TopologyCell, x: number, y: number, size: number): string {
  return `<a id="${escape(item.id)}" href="${escape(item.href)}" aria-label="${escape(item.title)}"><title>${escape(item.title)}</title><rect x="${x - 2}" y="${y - 2}" width="${size + 4}" height="${size + 4}" fill="transparent"/>${cellSign(item.tone, x, y, size)}</a>`;
}

/** What the signs mean, in two columns. */
const meanings: readonly (readonly [Tone, string])[] = [
  ["ok", "ready"],
  ["busy", "working"],
  ["wait", "waiting"],
  ["warn", "degraded"],
  ["bad", "failed"],
  ["held", "held"],
  ["off", "off"],
  ["unknown", "no contact"],
  ["free", "unclaimed"],
];
const legendRow = 21;

/** Height of {@link drawLegend}, pixels. */
export const legendHeight = 44 + Math.ceil(meanings.length / 2) * legendRow;

/** The legend; `scale` is how many machines one cell stands for. */
export function drawLegend(x: number, y: number, scale: number): string {
  const caption =
    scale === 1 ? "One cell is one machine" : `One cell is ${scale} machines, and shows the worst`;
  const parts = [text(x, y + 10, caption, { size: 12, weight: 550, fill: "ink-2" })];
  meanings.forEach(([tone, word], index) => {
    const left = x + (index % 2) * 90;
    const top = y + 22 + Math.floor(index / 2) * legendRow;
    parts.push(cellSign(tone, left, top, cell.size), text(left + 21, top + 10, word, { size: 12 }));
  });
  parts.push(text(x, y + legendHeight - 4, "Larger cells: control plane", { size: 12, fill: "ink-2" }));
  return parts.join("");
}

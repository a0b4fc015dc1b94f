/**
 * The whole installation as a single-line diagram: hub and replicas, providers, a trunk line, regions, zones, clusters,
 * machines. A pure function from data to SVG: nothing moves when states change, so people learn where things are.
 *
 * Order is by name; the text twin is the caller's table. One cell is one machine, up to {@link cellLimit}; above, one
 * cell stands for several and shows the worst state among them.
 */
import { compareTones, type Tone } from "./components/status.ts";
import { html, raw, type Html } from "./html.ts";
import {
  box,
  cell,
  drawCell,
  drawLegend,
  escape,
  legendHeight,
  node,
  text,
  type TopologyCell,
} from "./topology-shapes.ts";

export type { TopologyCell } from "./topology-shapes.ts";

/** One cluster of a zone. */
export interface TopologyCluster {
  readonly name: string;
  readonly href: string;
  readonly controlPlane: readonly TopologyCell[];
  readonly workers: readonly TopologyCell[];
}

/** One zone. */
export interface TopologyZone {
  readonly name: string;
  readonly href: string;
  readonly word: string;
  readonly tone: Tone;
  /** Domain, or what it waits for. */
  readonly detail: string;
  /** `joined`: solid line; `pending`: dashes; `silent`: dots. */
  readonly link: "joined" | "pending" | "silent";
  /** Age of the last message, or why there is none. */
  readonly linkText: string;
  readonly clusters: readonly TopologyCluster[];
  readonly unclaimed: readonly TopologyCell[];
}

/** Everything the picture shows. */
export interface Topology {
  readonly hub: {
    readonly replicas: readonly { name: string; tone: Tone; note: string }[];
    readonly store: readonly string[];
  };
  readonly providers: readonly {
    readonly name: string;
    readonly detail: string;
    readonly tone: Tone;
    readonly count: number;
  }[];
  readonly regions: readonly { readonly name: string; readonly zones: readonly TopologyZone[] }[];
  /** Machines that belong to no zone yet. */
  readonly unclaimed: readonly TopologyCell[];
}

/** The most cells one picture draws. */
export const cellLimit = 600;

const boxPadding = 14;
const nameColumn = 98;
const rowHeight = 22;

interface Layout {
  readonly width: number;
  readonly columns: number;
  /** Left edge of the zone boxes; the hub stands left of it (wide) or above (narrow). */
  readonly left: number;
  readonly hubWidth: number;
  readonly top: number;
}

/** The picture for one width, as an SVG document with a text alternative in `label`. */
export function topologySvg(view: Topology, label: string, kind: "wide" | "narrow"): Html {
  const hubHeight = boxHeight(view.hub.replicas.length, view.hub.store.length);
  const providersHeight = view.providers.length > 0 ? boxHeight(view.providers.length, 0) : 0;
  const layout: Layout =
    kind === "wide"
      ? { width: 1184, columns: 2, left: 252, hubWidth: 180, top: 0 }
      : { width: 560, columns: 1, left: 36, hubWidth: 268, top: Math.max(hubHeight, providersHeight) + 56 };
  const scale = cellScale(view);
  const parts: string[] = [];
  parts.push(hubBox(view, layout.hubWidth));
  // Beside the hub where there is no trunk between them, below it otherwise.
  if (kind === "wide") parts.push(providersBox(view, 0, hubHeight + 40, layout.hubWidth));
  else parts.push(providersBox(view, layout.hubWidth + 24, 0, layout.hubWidth));
  const trunkX = kind === "wide" ? 219 : 12;
  let y = layout.top + 10;
  let lastLine = y;
  for (const region of [...view.regions].sort(byName)) {
    const drawn = drawRegion(region, y, layout, trunkX, scale);
    parts.push(drawn.svg);
    lastLine = y + 16;
    y += drawn.height + 24;
  }
  const hubLine = 20 + hubHeight / 2;
  if (view.regions.length > 0) {
    const first = layout.top + 26;
    parts.push(
      kind === "wide"
        ? `<path d="M${layout.hubWidth} ${hubLine}H${trunkX}M${trunkX} ${Math.min(first, hubLine)}V${Math.max(lastLine, hubLine)}" fill="none" stroke="var(--ink-3)" stroke-width="1.25"/>${node(trunkX, hubLine)}`
        : `<path d="M${trunkX} ${20 + hubHeight}V${lastLine}" fill="none" stroke="var(--ink-3)" stroke-width="1.25"/>`,
    );
  }
  if (view.unclaimed.length > 0) {
    const drawn = drawUnclaimed(gather(view.unclaimed, scale), y, layout);
    parts.push(drawn.svg);
    y += drawn.height + 24;
  }
  // Under the hub where it has a column of its own, at the foot otherwise.
  const legendTop = kind === "wide" ? hubHeight + providersHeight + (providersHeight > 0 ? 80 : 44) : y;
  parts.push(drawLegend(kind === "wide" ? 0 : layout.left, legendTop, scale));
  const height = Math.max(y, legendTop + legendHeight + 8);
  return html`<svg
    class="layout-${kind}"
    viewBox="0 0 ${layout.width} ${height}"
    width="${layout.width}"
    height="${height}"
    role="group"
    aria-label="${label}"
  >
    ${raw(parts.join(""))}
  </svg>`;
}

const byName = (a: { readonly name: string }, b: { readonly name: string }): number =>
  a.name < b.name ? -1 : a.name > b.name ? 1 : 0;

const boxHeight = (rows: number, lines: number): number =>
  18 + rows * rowHeight + (lines > 0 ? 10 + lines * 18 : 0);

/** How many machines one cell stands for. */
function cellScale(view: Topology): number {
  let total = view.unclaimed.length;
  for (const region of view.regions) {
    for (const zone of region.zones) {
      total += zone.unclaimed.length;
      for (const cluster of zone.clusters) total += cluster.controlPlane.length + cluster.workers.length;
    }
  }
  for (const step of [1, 2, 5, 10, 20, 50, 100]) if (total / step <= cellLimit) return step;
  return Math.ceil(total / cellLimit);
}

/** Width of text in the vendored interface font, in pixels at 13 px: three classes of glyphs are near enough for layout. */
function textWidth(content: string): number {
  let width = 0;
  for (const character of content) {
    if (/[iljtfrI.,:;'|!()[\] ]/.test(character)) width += 3.9;
    else if (/[mwMW@]/.test(character)) width += 10.6;
    else width += /[A-Z]/.test(character) ? 8.5 : 7.2;
  }
  return width;
}

/** Text cut in the middle to about `width` pixels at 13 px; complete in a title. */
function cut(text: string, width: number): string {
  const most = Math.max(3, Math.floor(width / 6.8));
  if (text.length <= most) return escape(text);
  const head = Math.ceil((most - 1) / 2);
  return `${escape(text.slice(0, head))}…${escape(text.slice(text.length - (most - 1 - head)))}<title>${escape(text)}</title>`;
}

/** A small mark beside a word inside the picture. */
function toneMark(x: number, y: number, tone: Tone): string {
  const colours: Readonly<Record<Tone, string>> = {
    ok: "ok",
    busy: "busy",
    wait: "busy",
    warn: "warn",
    late: "warn",
    bad: "bad",
    held: "held",
    unknown: "ink-3",
    leaving: "ink-3",
    paused: "ink-3",
    off: "ink-3",
    free: "ink-3",
  };
  const colour = colours[tone];
  if (tone === "ok") return `<circle cx="${x}" cy="${y}" r="4.5" fill="var(--ok)"/>`;
  if (tone === "warn") return `<path d="M${x} ${y - 5}l5.3 9.6h-10.6Z" fill="var(--warn)"/>`;
  if (tone === "bad")
    return `<rect x="${x - 5}" y="${y - 5}" width="10" height="10" rx="2" fill="var(--bad)"/>`;
  if (tone === "unknown") return text(x, y + 4.5, "?", { fill: "ink-3", weight: 600, anchor: "middle" });
  return `<circle cx="${x}" cy="${y}" r="4.2" fill="none" stroke="var(--${colour})" stroke-width="1.5"/>`;
}

function hubBox(view: Topology, width: number): string {
  const replicas = view.hub.replicas;
  const height = boxHeight(replicas.length, view.hub.store.length);
  const parts = [
    text(
      0,
      10,
      `hub<tspan dx="8" font-weight="400" font-size="12" fill="var(--ink-2)">${replicas.length} ${replicas.length === 1 ? "replica" : "replicas"}</tspan>`,
      { weight: 600 },
    ),
    box(0, 20, width, height),
  ];
  replicas.forEach((replica, index) => {
    const y = 20 + 20 + index * rowHeight;
    parts.push(
      toneMark(20, y, replica.tone),
      text(33, y + 4.5, cut(replica.name, width - 90), { weight: 550 }),
    );
    if (replica.note)
      parts.push(
        text(width - boxPadding, y + 4.5, escape(replica.note), { size: 12, fill: "ink-2", anchor: "end" }),
      );
  });
  const below = 20 + 18 + replicas.length * rowHeight;
  if (view.hub.store.length > 0) {
    parts.push(`<path d="M${boxPadding} ${below}H${width - boxPadding}" stroke="var(--line-soft)"/>`);
    view.hub.store.forEach((line, index) =>
      parts.push(
        text(boxPadding, below + 18 + index * 18, cut(line, width - 28), { size: 12, fill: "ink-2" }),
      ),
    );
  }
  return parts.join("");
}

function providersBox(view: Topology, x: number, y: number, width: number): string {
  if (view.providers.length === 0) return "";
  const parts = [
    text(x, y + 10, "providers", { weight: 600 }),
    box(x, y + 20, width, boxHeight(view.providers.length, 0)),
  ];
  view.providers.forEach((provider, index) => {
    const line = y + 40 + index * rowHeight;
    parts.push(
      toneMark(x + 20, line, provider.tone),
      text(x + 33, line + 4.5, cut(provider.name, width - 80), { weight: 550 }),
      text(
        x + 41 + textWidth(provider.name),
        line + 4.5,
        cut(provider.detail, width - 80 - textWidth(provider.name)),
        {
          size: 12,
          fill: "ink-2",
        },
      ),
      text(x + width - boxPadding, line + 4.5, String(provider.count), { size: 12, anchor: "end" }),
    );
  });
  return parts.join("");
}

/** Machines without a zone: a last row of their own, not on the trunk. */
function drawUnclaimed(
  cells: readonly TopologyCell[],
  top: number,
  layout: Layout,
): { svg: string; height: number } {
  const width = layout.width - layout.left;
  const pitch = cell.size + cell.gap;
  const perLine = Math.max(1, Math.floor((width - boxPadding * 2) / pitch));
  const lines = Math.ceil(cells.length / perLine);
  const height = 20 + lines * pitch;
  const caption = `${cells.length} ${cells.length === 1 ? "machine" : "machines"} in no zone`;
  const parts = [
    text(
      layout.left,
      top,
      `unclaimed<tspan dx="10" font-weight="400" font-size="12" fill="var(--ink-2)">${caption}</tspan>`,
      { weight: 600 },
    ),
    box(layout.left, top + 12, width, height),
  ];
  cells.forEach((item, index) => {
    const x = layout.left + boxPadding + (index % perLine) * pitch;
    parts.push(drawCell(item, x, top + 24 + Math.floor(index / perLine) * pitch, cell.size));
  });
  return { svg: parts.join(""), height: height + 12 };
}

function drawRegion(
  region: Topology["regions"][number],
  top: number,
  layout: Layout,
  trunkX: number,
  scale: number,
): { svg: string; height: number } {
  const gap = 20;
  const width = Math.floor((layout.width - layout.left - gap * (layout.columns - 1)) / layout.columns);
  const zones = [...region.zones].sort(byName);
  const machines = zones.reduce((sum, zone) => sum + machineCount(zone), 0);
  const caption = `${zones.length} ${zones.length === 1 ? "zone" : "zones"} · ${machines} ${machines === 1 ? "machine" : "machines"}`;
  const parts = [
    text(
      layout.left,
      top,
      `${escape(region.name)}<tspan dx="10" font-weight="400" font-size="12" fill="var(--ink-2)">${caption}</tspan>`,
      { weight: 600 },
    ),
  ];
  const lineY = top + 16;
  let rowTop = top + 46;
  let height = 46;
  for (let start = 0; start < zones.length; start += layout.columns) {
    const row = zones.slice(start, start + layout.columns);
    const heights = row.map((zone) => zoneHeight(zone, width, scale));
    const tallest = Math.max(...heights);
    row.forEach((zone, index) => {
      const x = layout.left + index * (width + gap);
      const joint = x + 28;
      const from = index === 0 ? trunkX : layout.left + (index - 1) * (width + gap) + 28;
      const stroke = zone.link === "joined" ? "ink-3" : zone.link === "pending" ? "busy" : "warn";
      const dash =
        zone.link === "joined"
          ? ""
          : zone.link === "pending"
            ? ' stroke-dasharray="5 4"'
            : ' stroke-dasharray="2 5"';
      const y = start === 0 ? lineY : rowTop - 30;
      parts.push(
        `<path d="M${from} ${y}H${joint}V${rowTop}" fill="none" stroke="var(--${stroke})" stroke-width="1.25"${dash}/>`,
        node(joint, y),
        text(joint + 10, rowTop - 11, escape(zone.linkText), {
          size: 12,
          fill: zone.link === "silent" ? "warn-ink" : "ink-2",
        }),
        drawZone(zone, x, rowTop, width, heights[index] ?? tallest, scale),
      );
    });
    rowTop += tallest + 40;
    height += tallest + (start + layout.columns < zones.length ? 40 : 0);
  }
  return { svg: parts.join(""), height };
}

const machineCount = (zone: TopologyZone): number =>
  zone.unclaimed.length +
  zone.clusters.reduce((sum, cluster) => sum + cluster.controlPlane.length + cluster.workers.length, 0);

/** Several machines as fewer cells: each shows the worst of those it stands for. */
function gather(cells: readonly TopologyCell[], scale: number): readonly TopologyCell[] {
  if (scale === 1) return cells;
  const result: TopologyCell[] = [];
  for (let start = 0; start < cells.length; start += scale) {
    const group = cells.slice(start, start + scale).sort((a, b) => compareTones(a.tone, b.tone));
    const worst = group[0];
    if (worst) result.push({ ...worst, title: `${group.length} machines, worst: ${worst.title}` });
  }
  return result;
}

interface CellRow {
  readonly name: string;
  readonly href: string | undefined;
  readonly control: readonly TopologyCell[];
  readonly workers: readonly TopologyCell[];
  /** Lines the workers take. */
  readonly lines: number;
  readonly perLine: number;
}

function rowsOf(zone: TopologyZone, width: number, scale: number): CellRow[] {
  const rows: CellRow[] = [...zone.clusters].sort(byName).map((cluster) => {
    const control = gather(cluster.controlPlane, scale);
    const workers = gather(cluster.workers, scale);
    const used = nameColumn + control.length * (cell.control + cell.gap) + 16;
    const perLine = Math.max(1, Math.floor((width - boxPadding * 2 - used) / (cell.size + cell.gap)));
    return {
      name: cluster.name,
      href: cluster.href,
      control,
      workers,
      perLine,
      lines: Math.max(1, Math.ceil(workers.length / perLine)),
    };
  });
  if (zone.unclaimed.length > 0) {
    const workers = gather(zone.unclaimed, scale);
    const perLine = Math.max(1, Math.floor((width - boxPadding * 2 - nameColumn) / (cell.size + cell.gap)));
    rows.push({
      name: "unclaimed",
      href: undefined,
      control: [],
      workers,
      perLine,
      lines: Math.max(1, Math.ceil(workers.length / perLine)),
    });
  }
  return rows;
}

function zoneHeight(zone: TopologyZone, width: number, scale: number): number {
  const rows = rowsOf(zone, width, scale);
  return (
    52 +
    rows.reduce((sum, row) => sum + rowHeight + (row.lines - 1) * (cell.size + cell.gap), 0) +
    (rows.length > 0 ? 8 : 0)
  );
}

function drawZone(
  zone: TopologyZone,
  x: number,
  y: number,
  width: number,
  height: number,
  scale: number,
): string {
  const border = zone.tone === "warn" || zone.tone === "late" ? "warn" : zone.tone === "bad" ? "bad" : "line";
  const wordFill: Partial<Record<Tone, string>> = {
    busy: "busy-ink",
    wait: "busy-ink",
    warn: "warn-ink",
    late: "warn-ink",
    bad: "bad-ink",
  };
  const wordWidth = textWidth(zone.word) + 14;
  const parts = [
    box(x, y, width, height, border, zone.tone === "unknown" ? "5 4" : ""),
    `<a href="${escape(zone.href)}">${text(x + boxPadding, y + 22, cut(zone.name, width - wordWidth - 50), { size: 15, weight: 600 })}</a>`,
    toneMark(x + width - boxPadding - wordWidth + 2, y + 17, zone.tone),
    text(x + width - boxPadding, y + 21.5, escape(zone.word), {
      weight: 500,
      fill: wordFill[zone.tone] ?? "ink",
      anchor: "end",
    }),
    text(x + boxPadding, y + 39, cut(zone.detail, width - 40), { size: 12, fill: "ink-2" }),
  ];
  let rowY = y + 52;
  for (const row of rowsOf(zone, width, scale)) {
    const label = text(x + boxPadding, rowY + 12, cut(row.name, nameColumn - 10), {
      size: 12,
      fill: "ink-2",
    });
    parts.push(row.href === undefined ? label : `<a href="${escape(row.href)}">${label}</a>`);
    let cellX = x + boxPadding + nameColumn;
    for (const item of row.control) {
      parts.push(drawCell(item, cellX, rowY, cell.control));
      cellX += cell.control + cell.gap;
    }
    if (row.control.length > 0 && row.workers.length > 0) {
      parts.push(`<path d="M${cellX + 1} ${rowY}v14" stroke="var(--line)"/>`);
      cellX += 8;
    }
    row.workers.forEach((item, index) => {
      const line = Math.floor(index / row.perLine);
      parts.push(
        drawCell(
          item,
          cellX + (index % row.perLine) * (cell.size + cell.gap),
          rowY + 1 + line * (cell.size + cell.gap),
          cell.size,
        ),
      );
    });
    rowY += rowHeight + (row.lines - 1) * (cell.size + cell.gap);
  }
  return parts.join("");
}

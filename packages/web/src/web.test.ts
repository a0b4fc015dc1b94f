/**
 * The kit without a browser: escaping, assets, tones, the picture. How it looks is tested in test/browser.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { assetAt, assetPath } from "./assets.ts";
import { conditions, facts } from "./components/section.ts";
import { compareTones, glyph, needsAttention, statusChip, tones } from "./components/status.ts";
import { table } from "./components/table.ts";
import { age, shortAge } from "./components/time.ts";
import { html } from "./html.ts";
import { page, shell } from "./page.ts";
import { cellLimit, topologySvg, type Topology, type TopologyCell } from "./topology.ts";

const hostile = `<img src=x onerror="alert(1)">'&`;

function cells(count: number, tone: TopologyCell["tone"] = "ok"): TopologyCell[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `${tone}-${index}`,
    href: `/app/${index}`,
    title: hostile,
    tone,
  }));
}

function world(machines: number): Topology {
  return {
    hub: { replicas: [{ name: hostile, tone: "ok", note: "leader" }], store: [hostile] },
    unclaimed: cells(2, "wait"),
    providers: [{ name: "demo", detail: hostile, tone: "ok", count: 3 }],
    regions: [
      {
        name: "eu",
        zones: [
          {
            name: hostile,
            href: "/app/z",
            word: "Ready",
            tone: "ok",
            detail: hostile,
            link: "joined",
            linkText: "1s ago",
            clusters: [
              { name: hostile, href: "/app/c", controlPlane: cells(3, "bad"), workers: cells(machines) },
            ],
            unclaimed: cells(2, "free"),
          },
        ],
      },
    ],
  };
}

test("nothing interpolated becomes markup, in any component", () => {
  const rendered = [
    html`<p title="${hostile}">${hostile}</p>`,
    facts([["x", hostile]]),
    statusChip({ word: hostile, tone: "ok" }),
    conditions(
      [{ type: hostile, tone: "ok", reason: hostile, message: hostile, since: "2026-01-01T00:00:00Z" }],
      0,
    ),
    table({
      label: hostile,
      columns: [{ title: hostile, cell: () => hostile }],
      rows: [1],
      rowId: () => hostile,
    }),
    topologySvg(world(5), hostile, "wide"),
    page({ title: hostile, body: hostile }),
    shell({
      title: hostile,
      product: "K",
      groups: [{ title: hostile, entries: [{ label: hostile, href: hostile }] }],
      active: "",
      crumbs: [{ label: hostile }],
      foot: hostile,
      body: hostile,
    }),
  ];
  for (const markup of rendered) {
    assert.ok(!String(markup).includes("<img"), String(markup));
    assert.ok(!/onerror="/.test(String(markup)));
  }
});

test("any text survives escaping unchanged when read back", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const inner = String(html`<b>${text}</b>`).slice(3, -4);
      const back = inner.replace(
        /&(amp|lt|gt|quot|#39);/g,
        (_, name: string) => ({ amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" })[name] ?? "",
      );
      assert.equal(back, text);
    }),
  );
});

test("assets carry a hash, and the sheet names fonts that are served", () => {
  const sheet = assetAt(assetPath("kit.css"));
  assert.ok(sheet);
  const fonts = [...sheet.body.toString().matchAll(/url\("?([^")]+)"?\)/g)].map((match) => match[1] ?? "");
  assert.ok(fonts.length >= 2);
  for (const font of fonts) assert.ok(assetAt(font), font);
  assert.equal(assetAt("/static/vendor/../package.json"), undefined);
});

test("every tone has its own shape and a place in the order", () => {
  const shapes = new Set(tones.map((tone) => String(glyph(tone))));
  assert.equal(shapes.size, tones.length);
  assert.ok(compareTones("bad", "ok") < 0);
  assert.deepEqual(tones.filter(needsAttention).sort(), ["bad", "late", "unknown", "warn"]);
});

test("ages use the contract's short form", () => {
  assert.deepEqual([undefined, 0, 59_999, 60_000, 3_600_000, 86_400_000 * 3].map(shortAge), [
    "-",
    "0s",
    "59s",
    "1m",
    "1h",
    "3d",
  ]);
  assert.equal(String(age(undefined, 0)), "-");
});

test("the picture gathers machines above its limit and keeps the worst in sight", () => {
  const few = String(topologySvg(world(10), "x", "narrow"));
  assert.equal(few.match(/<a id="ok-/g)?.length, 10);
  const many = String(topologySvg(world(5000), "x", "wide"));
  const drawn = many.match(/<a id="/g)?.length ?? 0;
  assert.ok(drawn > 100 && drawn <= cellLimit, String(drawn));
  assert.match(many, /10 machines, worst/);
});

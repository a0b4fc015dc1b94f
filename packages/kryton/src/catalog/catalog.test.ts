import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { start } from "../kryton.fixture.ts";
import { builtInImages } from "./built-in.ts";
import { builtInCatalog, loadCatalog, supports } from "./catalog.ts";
import { ImageInventory } from "./inventory.ts";

test("twelve Windows and eleven Linux images are built in, and demo can use them all", async () => {
  assert.equal(builtInImages.filter(({ os }) => os === "windows").length, 12);
  assert.equal(builtInImages.filter(({ os }) => os === "linux").length, 11);
  await using api = await start();
  const { items } = (await api.call("GET", "/api/v1/images")).json;
  assert.equal(items.length, 23);
  const names = items.map(({ name }: { name: string }) => name);
  assert.deepEqual(names, [...names].sort());
  assert.ok(
    items.every(
      (image: { ready: boolean; storageSource: string }) => image.ready && image.storageSource === "demo",
    ),
  );
});

test("a catalog file replaces the built-ins; every violation names the file", async () => {
  const directory = await mkdtemp(join(tmpdir(), "kryton-catalog-"));
  const file = join(directory, "images.json");
  const load = async (value: unknown) => {
    await writeFile(file, typeof value === "string" ? value : JSON.stringify(value));
    return loadCatalog(file);
  };
  try {
    const { images } = await load({
      images: [
        { id: "w", name: "W", dockurVersion: "11", extra: 1 },
        { id: "l", name: "L", os: "linux", firmware: "bios" },
        { id: "d", name: "D", providers: ["dockur"] },
      ],
    });
    assert.deepEqual(
      images.map(({ providers }) => providers),
      [["kubevirt", "dockur"], ["kubevirt", "libvirt"], ["dockur"]],
    );
    assert.equal(images[0]?.firmware, "efi");
    for (const bad of [
      "{",
      { images: [] },
      { images: [{ id: "", name: "x" }] },
      { images: [{ id: "a", name: "" }] },
      {
        images: [
          { id: "a", name: "a" },
          { id: "a", name: "b" },
        ],
      },
      { images: [{ id: "a", name: "a", os: "beos" }] },
      { images: [{ id: "a", name: "a", architecture: "arm64" }] },
      { images: [{ id: "a", name: "a", firmware: "coreboot" }] },
    ]) {
      await assert.rejects(load(bad), new RegExp(file));
    }
    await assert.rejects(loadCatalog(join(directory, "none")), { code: "invalid_argument" });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test("availability is the first rule that applies", async () => {
  const windows = builtInImages.find(({ id }) => id === "windows-11-pro");
  const linux = builtInImages.find(({ id }) => id === "debian-13");
  assert.ok(windows && linux);
  assert.equal(supports(windows, "libvirt"), false);
  const inventory = (provider: "dockur" | "libvirt" | "kubevirt", stored: boolean): ImageInventory =>
    new ImageInventory({
      catalog: builtInCatalog(),
      provider,
      sources: stored
        ? [{ stored: () => Promise.resolve({ storageSource: "verified", storagePath: "/x" }) }]
        : [],
    });
  assert.deepEqual((await inventory("libvirt", true).available(windows)).availability, "catalog");
  assert.deepEqual((await inventory("libvirt", true).available(linux)).storageSource, "verified");
  assert.deepEqual((await inventory("libvirt", false).available(linux)).ready, false);
  assert.deepEqual((await inventory("dockur", false).available(windows)).availability, "on-demand");
  assert.deepEqual((await inventory("kubevirt", false).available(linux)).ready, false);
});

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import {
  CodedError,
  OutboundClient,
  systemEdges,
  systemRandom,
  type OutboundRequest,
  type OutboundStream,
} from "@kontinuum/std";
import { krytonImage } from "../cli/kryton-image.ts";
import { ArtifactStore } from "./artifact-store.ts";

const edges = systemEdges();
const image = Buffer.from(systemRandom.bytes(300_000));
const digest = createHash("sha256").update(image).digest("hex");
const url = "https://images.example/debian.qcow2";

/** Serves an image over the real client's interface, with ranges and a cut when asked. */
class Source extends OutboundClient {
  requests: OutboundRequest[] = [];
  cutAfter = Infinity;
  content = image;

  constructor() {
    super(edges.network, edges.clock, { allow: [] });
  }

  override stream(request: OutboundRequest): Promise<OutboundStream> {
    this.requests.push(request);
    if (request.httpsOnly && !request.url.startsWith("https:")) {
      return Promise.reject(new CodedError("invalid_argument", "must be https"));
    }
    const from = Number(/bytes=(\d+)-/.exec(request.headers?.["range"] ?? "")?.[1] ?? 0);
    const body = this.content.subarray(from);
    const cut = this.cutAfter;
    const chunks = function* () {
      for (let at = 0; at < body.length; at += 10_000) {
        if (at >= cut) throw new Error("connection lost");
        yield body.subarray(at, at + 10_000);
      }
    };
    const headers = {
      "content-length": String(body.length),
      ...(from > 0
        ? { "content-range": `bytes ${from}-${this.content.length - 1}/${this.content.length}` }
        : {}),
    };
    return Promise.resolve({
      status: from > 0 ? 206 : 200,
      headers,
      url: request.url,
      body: Readable.from(chunks()),
    });
  }
}

async function withStore(
  work: (store: ArtifactStore, source: Source, directory: string) => Promise<void>,
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "kryton-artifacts-"));
  const source = new Source();
  try {
    await work(
      new ArtifactStore({ directory, edges, outbound: source, maxBytes: 1_000_000 }),
      source,
      directory,
    );
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

test("a fetched image is verified, read-only, under its digest, with a manifest", async () => {
  await withStore(async (store, source, directory) => {
    const manifest = await store.fetch({ imageId: "debian-13", url, sha256: digest });
    assert.deepEqual(
      { ...manifest, acquiredAt: "" },
      {
        imageId: "debian-13",
        sourceUrl: url,
        sha256: digest,
        path: join(directory, `${digest}.qcow2`),
        bytes: image.length,
        acquiredAt: "",
        bootValidated: false,
      },
    );
    assert.equal((await stat(manifest.path)).mode & 0o777, 0o444);
    assert.deepEqual(await store.stored("debian-13"), manifest);
    await store.verify(manifest);
    await store.fetch({ imageId: "debian-12", url, sha256: digest });
    assert.equal(source.requests.length, 1, "what is there is checked, not downloaded again");
    assert.deepEqual(
      (await readdir(directory)).sort(),
      [`${digest}.qcow2`, "debian-12.json", "debian-13.json"].sort(),
    );
  });
});

test("a wrong digest, a too large image and an http source publish nothing", async () => {
  await withStore(async (store, source, directory) => {
    await assert.rejects(store.fetch({ imageId: "a", url, sha256: "0".repeat(64) }), { code: "data_loss" });
    source.content = Buffer.alloc(2_000_000);
    await assert.rejects(store.fetch({ imageId: "a", url, sha256: digest }), { code: "payload_too_large" });
    await assert.rejects(store.fetch({ imageId: "a", url: "http://x/", sha256: digest }), {
      code: "invalid_argument",
    });
    await assert.rejects(store.fetch({ imageId: "../a", url, sha256: digest }), { code: "invalid_argument" });
    await assert.rejects(store.fetch({ imageId: "a", url, sha256: "abc" }), { code: "invalid_argument" });
    const left = (await readdir(directory)).filter((name) => !name.endsWith(".partial"));
    assert.deepEqual(left, []);
    assert.equal(source.requests[0]?.redirects, 9);
  });
});

test("an interrupted download goes on where it stopped", async () => {
  await withStore(async (store, source) => {
    source.cutAfter = 120_000;
    await assert.rejects(store.fetch({ imageId: "a", url, sha256: digest }), /run it again/);
    source.cutAfter = Infinity;
    let last = 0;
    await store.fetch({ imageId: "a", url, sha256: digest, onProgress: (bytes) => (last = bytes) });
    assert.equal(source.requests[1]?.headers?.["range"], "bytes=120000-");
    assert.equal(last, image.length);
  });
});

test("a tampered artifact is refused", async () => {
  await withStore(async (store, _, directory) => {
    const manifest = await store.fetch({ imageId: "a", url, sha256: digest });
    await chmod(manifest.path, 0o644);
    await writeFile(manifest.path, Buffer.alloc(image.length));
    await assert.rejects(store.verify(manifest), { code: "data_loss" });
    await assert.rejects(store.fetch({ imageId: "b", url, sha256: digest }), { code: "data_loss" });
    await writeFile(join(directory, "a.json"), JSON.stringify({ ...manifest, path: "/etc/passwd" }));
    assert.equal(await store.stored("a"), undefined);
  });
});

test("kryton-image: every command", async () => {
  const directory = await mkdtemp(join(tmpdir(), "kryton-image-"));
  const run = async (...args: string[]): Promise<{ status: number; out: string; err: string }> => {
    let out = "";
    let err = "";
    const io = {
      out: (t: string) => void (out += t),
      err: (t: string) => void (err += t),
      env: {},
      random: edges.random,
    };
    const status = await krytonImage(args, io, { edges, outbound: new Source(), terminal: false });
    return { status, out, err };
  };
  try {
    assert.equal(JSON.parse((await run("list")).out).length, 11);
    assert.deepEqual(JSON.parse((await run("validate")).out), {
      status: "templates valid",
      bootValidation: "not performed",
    });
    let drawn = "";
    const terminal = {
      out: () => {},
      err: (text: string) => void (drawn += text),
      env: {},
      random: edges.random,
    };
    const tty = { edges, outbound: new Source(), terminal: true };
    assert.equal(
      await krytonImage(
        ["fetch", "--image", "debian-12", "--sha256", digest, "--dir", directory],
        terminal,
        tty,
      ),
      0,
    );
    assert.match(drawn, /\r\[#{30}\] 100 % of 0\.3 MiB\n$/, "a terminal sees a progress bar");
    const fetched = await run("fetch", "--image", "debian-13", "-sha256", digest, `--dir=${directory}`);
    assert.equal(fetched.status, 0, fetched.err);
    assert.equal(JSON.parse(fetched.out).imageId, "debian-13");
    assert.ok(await readFile(join(directory, "debian-13.json")));
    assert.equal((await run("fetch", "--image", "debian-13")).status, 1);
    assert.equal((await run("fetch", "--image", "windows-11-pro", "--sha256", digest)).status, 1);
    const cdi = JSON.parse((await run("cdi", "--url", url, "--sha256", digest)).out);
    assert.deepEqual(
      cdi.items.map((item: { kind: string }) => item.kind),
      ["DataVolume", "DataSource"],
    );
    assert.equal(cdi.items[0].spec.source.http.checksum, `sha256:${digest}`);
    assert.equal((await run("cdi", "--url", "http://x/")).status, 1);
    assert.match((await run("libvirt", "--name", "a<b&'c")).out, /<name>a&lt;b&amp;&apos;c<\/name>/);
    assert.match((await run("cloud-init")).out, /^#cloud-config\n\{/);
    assert.equal((await run("list", "extra")).status, 1);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

/**
 * `kryton-image fetch` as a process against a real HTTPS server: digests, ranges, redirects, cuts, limits of the disk,
 * signed lists.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { findProgram, run, skipUnless } from "../services/service.ts";

const program = new URL("../../bin/kryton-image", import.meta.url).pathname;
const openssl = await findProgram("openssl", "openssl");
const gpg = await findProgram("gpg", "gnupg");
const skip = skipUnless(openssl);
const image = randomBytes(2_000_000);
const digest = createHash("sha256").update(image).digest("hex");

let folder = "";
let server: https.Server;
let base = "";
/** Requests so far: path and range. */
const asked: string[] = [];
/** Bytes after which the next answers are cut. */
let cutAfter = Infinity;

before(async () => {
  if (skip) return;
  folder = await mkdtemp(join(tmpdir(), "kryton-fetch-"));
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const kind = [
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-days",
    "2",
  ];
  await run(String(openssl), [
    ...kind,
    "-subj",
    "/CN=localhost",
    "-addext",
    "subjectAltName=IP:127.0.0.1",
    "-keyout",
    key,
    "-out",
    cert,
  ]);
  server = https.createServer({ key: await readFile(key), cert: await readFile(cert) }, serve);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

after(async () => {
  if (skip) return;
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(folder, { recursive: true, force: true });
});

/** An image server: whole or in ranges, by redirect, lying about ranges, or cut. */
function serve(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const path = incoming.url ?? "";
  asked.push(`${path} ${incoming.headers.range ?? ""}`.trim());
  const hops = /^\/hop\/(\d+)$/.exec(path)?.[1];
  if (hops !== undefined) {
    const location = hops === "0" ? `${base}/image.qcow2` : `${base}/hop/${Number(hops) - 1}`;
    return void outgoing.writeHead(302, { location }).end();
  }
  if (path === "/to-http") return void outgoing.writeHead(302, { location: "http://127.0.0.1/image" }).end();
  if (path === "/to-user")
    return void outgoing.writeHead(302, { location: base.replace("//", "//u:p@") }).end();
  if (path === "/gone") return void outgoing.writeHead(404).end();
  const from =
    path === "/no-ranges" ? 0 : Number(/^bytes=(\d+)-$/.exec(incoming.headers.range ?? "")?.[1] ?? 0);
  const body = image.subarray(path === "/lying" ? 0 : from);
  const range = {
    "content-range": `bytes ${path === "/lying" ? 0 : from}-${image.length - 1}/${image.length}`,
  };
  outgoing.writeHead(from > 0 ? 206 : 200, { "content-length": body.length, ...(from > 0 ? range : {}) });
  if (cutAfter >= body.length) return void outgoing.end(body);
  outgoing.write(body.subarray(0, cutAfter), () => outgoing.destroy());
}

interface Ran {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs kryton-image; `prefix` is a shell line before it. */
function fetchImage(dir: string, args: readonly string[], prefix = ""): Promise<Ran> {
  const command = `${prefix} exec "$0" "$@"`;
  const child = spawn(
    "bash",
    ["-c", command, program, "fetch", "--image", "debian-13", "--dir", dir, ...args],
    {
      env: {
        PATH: process.env["PATH"],
        NODE_EXTRA_CA_CERTS: join(folder, "cert.pem"),
        KRYTON_OUTBOUND_ALLOW: "127.0.0.1",
      },
    },
  );
  let out = "";
  let err = "";
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  return new Promise((resolve) => child.once("close", (status) => resolve({ status, out, err })));
}

/** A fresh folder for images. */
async function empty(name: string): Promise<string> {
  const dir = join(folder, name);
  await mkdir(dir);
  return dir;
}

test("an image is fetched, also over nine redirects, and is what its digest says", { skip }, async () => {
  const dir = await empty("plain");
  const plain = await fetchImage(dir, ["--url", `${base}/image.qcow2`, "--sha256", digest]);
  assert.equal(plain.status, 0, plain.err);
  assert.deepEqual(await readFile(join(dir, `${digest}.qcow2`)), image);
  assert.equal((await stat(join(dir, `${digest}.qcow2`))).mode & 0o777, 0o444);
  assert.equal(JSON.parse(plain.out).bytes, image.length);
  assert.equal(
    (await fetchImage(await empty("nine"), ["--url", `${base}/hop/8`, "--sha256", digest])).status,
    0,
  );
  const ten = await fetchImage(await empty("ten"), ["--url", `${base}/hop/9`, "--sha256", digest]);
  assert.equal(ten.status, 1);
  assert.match(ten.err, /redirects too often/);
});

test("what is not https, lies, or is gone publishes nothing", { skip }, async () => {
  const dir = await empty("bad");
  for (const [path, problem] of [
    ["/to-http", /https/],
    ["/to-user", /user/],
    ["/gone", /answered 404/],
  ] as const) {
    const { status, err } = await fetchImage(dir, ["--url", `${base}${path}`, "--sha256", digest]);
    assert.equal(status, 1, path);
    assert.match(err, problem);
  }
  const wrong = await fetchImage(dir, ["--url", `${base}/image.qcow2`, "--sha256", "0".repeat(64)]);
  assert.match(wrong.err, /nothing was kept/);
  assert.deepEqual(await readdir(dir), []);
  const plain = await fetchImage(dir, ["--url", base.replace("https", "http"), "--sha256", digest]);
  assert.equal(plain.status, 1);
});

test(
  "a cut download goes on where it stopped, or begins again where the server has no ranges",
  { skip },
  async () => {
    for (const path of ["/image.qcow2", "/no-ranges", "/lying"]) {
      const dir = await empty(`cut${path.replace("/", "-")}`);
      cutAfter = 700_000;
      const cut = await fetchImage(dir, ["--url", `${base}${path}`, "--sha256", digest]);
      cutAfter = Infinity;
      assert.equal(cut.status, 1);
      assert.match(cut.err, /run it again to go on/);
      const [partial = ""] = await readdir(dir);
      const kept = (await stat(join(dir, partial))).size;
      assert.ok(kept > 0 && kept <= 700_000, `${kept} bytes were kept`);
      const whole = await fetchImage(dir, ["--url", `${base}${path}`, "--sha256", digest]);
      if (path === "/lying") {
        assert.equal(whole.status, 1, "a range that was not asked for is not appended");
        assert.equal((await fetchImage(dir, ["--url", `${base}/image.qcow2`, "--sha256", digest])).status, 0);
      } else {
        assert.equal(whole.status, 0, whole.err);
        assert.equal(asked.at(-1), `${path} bytes=${kept}-`);
      }
      assert.deepEqual(await readFile(join(dir, `${digest}.qcow2`)), image);
      assert.deepEqual((await readdir(dir)).sort(), [`${digest}.qcow2`, "debian-13.json"].sort());
    }
  },
);

test(
  "a disk that takes no more is told, nothing is published, and room lets it go on",
  { skip },
  async () => {
    const dir = await empty("full");
    const full = await fetchImage(
      dir,
      ["--url", `${base}/image.qcow2`, "--sha256", digest],
      "trap '' XFSZ; ulimit -f 500;",
    );
    assert.equal(full.status, 1);
    assert.match(full.err, /EFBIG|ENOSPC|too large/);
    assert.deepEqual(
      (await readdir(dir)).filter((name) => !name.startsWith(".")),
      [],
    );
    assert.equal((await fetchImage(dir, ["--url", `${base}/image.qcow2`, "--sha256", digest])).status, 0);
  },
);

test(
  "the digest can come from a signed list, and from none that is not",
  { skip: skip || skipUnless(gpg) },
  async () => {
    const home = await empty("gnupg");
    const make = (...args: readonly string[]): Promise<unknown> =>
      run(String(gpg), [
        "--homedir",
        home,
        "--batch",
        "--quiet",
        "--no-tty",
        "--pinentry-mode",
        "loopback",
        "--passphrase",
        "",
        ...args,
      ]);
    const file = (name: string): string => join(folder, name);
    await make("--quick-generate-key", "Release <release@example.org>", "ed25519", "sign", "never");
    await make("--output", file("keyring.gpg"), "--export");
    await writeFile(file("SUMS"), `${"1".repeat(64)}  other.qcow2\n${digest} *image.qcow2\n`);
    await make("--output", file("SUMS.sig"), "--detach-sign", file("SUMS"));
    await writeFile(file("CHECKSUM.in"), `# release\nSHA256 (image.qcow2) = ${digest}\n`);
    await make("--output", file("CHECKSUM"), "--clearsign", file("CHECKSUM.in"));
    try {
      const signed = (name: string, ...args: readonly string[]): Promise<Ran> =>
        fetchImage(join(folder, name), [
          "--url",
          `${base}/image.qcow2`,
          "--keyring",
          file("keyring.gpg"),
          ...args,
        ]);
      const detached = await signed("s1", "--checksums", file("SUMS"), "--signature", file("SUMS.sig"));
      assert.equal(detached.status, 0, detached.err);
      const clear = await signed("s2", "--checksums", file("CHECKSUM"));
      assert.equal(clear.status, 0, clear.err);
      await writeFile(file("FORGED"), `${"0".repeat(64)}  image.qcow2\n`);
      const forged = await signed("s3", "--checksums", file("FORGED"), "--signature", file("SUMS.sig"));
      assert.equal(forged.status, 1);
      assert.match(forged.err, /signature is not good/);
      assert.match(
        (await signed("s4", "--checksums", file("SUMS"))).err,
        /signature is not good/,
        "not clear-signed",
      );
      const around = `${"0".repeat(64)}  image.qcow2\n${await readFile(file("CHECKSUM"), "utf8")}`;
      await writeFile(file("AROUND"), around);
      const outside = await signed("s5", "--checksums", file("AROUND"));
      assert.ok(
        outside.status === 1 || JSON.parse(outside.out).sha256 === digest,
        "text around a signature counts for nothing",
      );
      const differs = await signed(
        "s6",
        "--checksums",
        file("SUMS"),
        "--signature",
        file("SUMS.sig"),
        "--sha256",
        "2".repeat(64),
      );
      assert.match(differs.err, /is not the digest/);
      const unlisted = await fetchImage(join(folder, "s7"), [
        "--url",
        `${base}/other`,
        "--keyring",
        file("keyring.gpg"),
        "--checksums",
        file("CHECKSUM"),
      ]);
      assert.match(unlisted.err, /has no SHA-256 of other/);
    } finally {
      await run("gpgconf", ["--homedir", home, "--kill", "all"]).catch(() => undefined);
    }
  },
);

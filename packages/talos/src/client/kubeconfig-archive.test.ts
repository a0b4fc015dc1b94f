/**
 * The archive reader on what Talos sends, on what tar programs send, and on hostile bytes.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { unpackKubeconfig } from "./kubeconfig-archive.ts";
import { isTalosError } from "./talos-error.ts";

/** A tar of one file; `cut` leaves out padding and end mark, as Talos does. */
export function tarOf(name: string, text: string, options: { cut?: boolean; type?: string } = {}): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write("0000600\0", 100);
  header.write(`${Buffer.byteLength(text).toString(8).padStart(11, "0")}\0`, 124);
  header.write("        ", 148);
  header.write(options.type ?? "0", 156);
  header.write("ustar\0", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  const body = Buffer.from(text);
  if (options.cut) return Buffer.concat([header, body]);
  return Buffer.concat([header, body, Buffer.alloc((512 - (body.length % 512)) % 512), Buffer.alloc(1024)]);
}

const unpack = async (tar: Uint8Array): Promise<string> =>
  Buffer.from(await unpackKubeconfig(gzipSync(tar))).toString("utf8");

const refuses = (archive: Uint8Array): Promise<void> =>
  assert.rejects(unpackKubeconfig(archive), (error) => isTalosError(error, "protocol"));

test("reads the cut archive of Talos and a complete one", async () => {
  for (const text of ["a: 1\n", "x".repeat(512), ""]) {
    assert.equal(await unpack(tarOf("kubeconfig", text, { cut: true })), text);
    assert.equal(await unpack(tarOf("kubeconfig", text)), text);
  }
});

test("refuses another name, a link, a second file, and a file that is cut", async () => {
  await refuses(gzipSync(tarOf("../kubeconfig", "x")));
  await refuses(gzipSync(tarOf("kubeconfig", "x", { type: "2" })));
  const first = tarOf("kubeconfig", "x").subarray(0, 1024);
  await refuses(gzipSync(Buffer.concat([first, tarOf("other", "y")])));
  await refuses(gzipSync(tarOf("kubeconfig", "x".repeat(100), { cut: true }).subarray(0, 560)));
});

test("refuses a damaged header, no gzip, and a bomb before it is unpacked", async () => {
  const damaged = tarOf("kubeconfig", "x");
  damaged[100] = 0x37;
  await refuses(gzipSync(damaged));
  await refuses(Buffer.from("plain"));
  await refuses(gzipSync(Buffer.alloc(64 * 1024 * 1024)));
});

test("any bytes are read or refused as a protocol failure, nothing else", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 2048 }), async (bytes) => {
      const outcome = unpackKubeconfig(gzipSync(bytes));
      await outcome.catch((error: unknown) => assert(isTalosError(error, "protocol")));
    }),
    { numRuns: 200 },
  );
});

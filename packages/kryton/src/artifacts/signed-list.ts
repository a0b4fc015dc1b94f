/**
 * The digest of an image from a distribution's signed list, verified with `gpgv` against keys the operator chose.
 *
 * Only what the signature covers is read: for a list with a signature of its own the bytes that were verified, for a
 * clear-signed one what `gpgv` hands out. No key is ever fetched, none is trusted by default.
 *
 * Sources: GnuPG manual (gpgv), coreutils and BSD forms of checksum lists.
 */
import { spawn } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { CodedError, messageOf } from "@kontinuum/std";

const maxListBytes = 4 * 1024 * 1024;
const limitMs = 30_000;
const maxNotice = 300;

/** A signed list, and what to check it with. Paths. */
export interface SignedList {
  readonly checksums: string;
  /** A detached signature; empty: the list is clear-signed. */
  readonly signature: string;
  /** Keys that may have signed it. */
  readonly keyring: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The SHA-256 the list gives for a file name. Fails with `permission_denied` (signature) or `invalid_argument`. */
export async function signedDigest(list: SignedList, fileName: string): Promise<string> {
  const bytes = await read("--checksums", list.checksums);
  await read("--keyring", list.keyring);
  const keyring = resolve(list.keyring);
  let text: string;
  if (list.signature === "") {
    text = await gpgv(
      ["--keyring", keyring, "--output", "-", "--", resolve(list.checksums)],
      Buffer.alloc(0),
      list.env,
    );
  } else {
    await read("--signature", list.signature);
    await gpgv(["--keyring", keyring, "--", resolve(list.signature), "-"], bytes, list.env);
    text = bytes.toString("utf8");
  }
  const found = new Set(digestsOf(text, fileName));
  const [digest] = found;
  if (digest === undefined || found.size > 1) {
    throw new CodedError(
      "invalid_argument",
      `the signed list ${list.checksums} ${found.size === 0 ? "has no SHA-256 of" : "contradicts itself about"} ${fileName}`,
    );
  }
  return digest;
}

function* digestsOf(text: string, fileName: string): Generator<string> {
  for (const line of text.split("\n")) {
    const match =
      /^([0-9a-f]{64})\s+\*?(.+?)\s*$/i.exec(line) ?? /^SHA256 \((.+)\) = ([0-9a-f]{64})\s*$/i.exec(line);
    if (!match) continue;
    const [, first = "", second = ""] = match;
    const [digest, name] = /^[0-9a-f]{64}$/i.test(first) ? [first, second] : [second, first];
    if (name.replace(/^.*\//, "") === fileName) yield digest.toLowerCase();
  }
}

async function read(flag: string, file: string): Promise<Buffer> {
  try {
    if ((await stat(file)).size > maxListBytes) {
      throw new CodedError("invalid_argument", `${flag} ${file} is larger than ${maxListBytes} bytes`);
    }
    return await readFile(file);
  } catch (error) {
    if (error instanceof CodedError) throw error;
    throw new CodedError("invalid_argument", `${flag} ${file} cannot be read: ${messageOf(error)}`);
  }
}

/** Runs gpgv; its output. Anything but a good signature is a failure. */
function gpgv(args: readonly string[], input: Buffer, env: SignedList["env"]): Promise<string> {
  return new Promise((done, refused) => {
    const child = spawn("gpgv", args, {
      env: { PATH: env["PATH"], LC_ALL: "C" },
      stdio: ["pipe", "pipe", "pipe"],
      timeout: limitMs,
    });
    let out = "";
    let notice = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      if (out.length <= maxListBytes) out += chunk;
    });
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      if (notice.length <= maxNotice) notice += chunk;
    });
    child.once("error", (cause) =>
      refused(
        new CodedError(
          "unavailable",
          "the signature cannot be checked: gpgv is not installed (package gpgv)",
          { cause },
        ),
      ),
    );
    child.once("close", (code) => {
      if (code === 0) return done(out);
      const why = notice.replaceAll(/\s+/g, " ").slice(0, maxNotice);
      refused(new CodedError("permission_denied", `the list's signature is not good: ${why}`));
    });
    child.stdin.on("error", () => {});
    child.stdin.end(input);
  });
}

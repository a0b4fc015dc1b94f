/**
 * Verified disk images on disk: `<digest>.qcow2` beside one manifest per image.
 *
 * What always holds: a file of that name was hashed to that digest, by us, before it got its name; a
 * download that does not match leaves nothing behind; an existing file is checked again and never
 * overwritten. The digest comes from the operator, never from beside the image. An interrupted download
 * is taken up where it stopped, and hashed as a whole.
 */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { link, open, readFile, rename, stat, unlink, writeFile, type FileHandle } from "node:fs/promises";
import { join, resolve } from "node:path";
import { CodedError, ensureFolder, messageOf, type Edges, type OutboundClient } from "@kontinuum/std";
import { z } from "zod";
import { formatTime } from "../model/bytes.ts";

/** Ids of images with artifacts: safe as file names. */
export const artifactIdPattern = /^[a-z0-9][a-z0-9.-]{0,127}$/;
/** Form of a digest. */
export const digestPattern = /^[0-9a-f]{64}$/;
/** Largest image, bytes (32 GiB). */
export const maxImageBytes = 32 * 1024 ** 3;
/** Longest download, milliseconds. */
export const maxDownloadMs = 30 * 60_000;
/** Redirects that are followed. */
export const maxRedirects = 9;

/** What is known of a fetched image. */
export const manifestSchema = z.object({
  imageId: z.string().regex(artifactIdPattern),
  sourceUrl: z.string(),
  sha256: z.string().regex(digestPattern),
  path: z.string(),
  bytes: z.int().min(0),
  acquiredAt: z.string(),
  /** Always false: a checksum says nothing about whether it boots. */
  bootValidated: z.literal(false),
});
/** See {@link manifestSchema}. */
export type Manifest = z.infer<typeof manifestSchema>;

/** What to fetch. */
export interface FetchRequest {
  readonly imageId: string;
  readonly url: string;
  readonly sha256: string;
  /** Told how far it is. */
  onProgress?(bytes: number, total: number | undefined): void;
}

/** What a store works with. */
export interface ArtifactStoreOptions {
  readonly directory: string;
  readonly edges: Edges;
  readonly outbound: OutboundClient;
  /** Lower than {@link maxImageBytes} in tests. */
  readonly maxBytes?: number;
}

/** See the module comment. */
export class ArtifactStore {
  readonly #directory: string;
  readonly #edges: Edges;
  readonly #outbound: OutboundClient;
  readonly #maxBytes: number;

  constructor({ directory, edges, outbound, maxBytes }: ArtifactStoreOptions) {
    this.#directory = resolve(directory);
    this.#edges = edges;
    this.#outbound = outbound;
    this.#maxBytes = maxBytes ?? maxImageBytes;
  }

  /** Where the image of this digest lies. */
  pathOf(sha256: string): string {
    return join(this.#directory, `${sha256}.qcow2`);
  }

  /** The manifest of an image whose file is there with the recorded size, or `undefined`. */
  async stored(imageId: string): Promise<Manifest | undefined> {
    const manifest = await this.manifest(imageId);
    if (!manifest) return undefined;
    const found = await stat(manifest.path).catch(() => undefined);
    return found?.isFile() && found.size === manifest.bytes ? manifest : undefined;
  }

  /** The manifest of an image; `undefined` when there is none that holds. */
  async manifest(imageId: string): Promise<Manifest | undefined> {
    if (!artifactIdPattern.test(imageId)) return undefined;
    try {
      const raw: unknown = JSON.parse(await readFile(join(this.#directory, `${imageId}.json`), "utf8"));
      const manifest = manifestSchema.parse(raw);
      if (manifest.imageId !== imageId || manifest.path !== this.pathOf(manifest.sha256)) return undefined;
      return manifest;
    } catch {
      return undefined;
    }
  }

  /** Hashes the artifact of a manifest again. Fails with `data_loss` when it changed. */
  async verify(manifest: Manifest): Promise<void> {
    const { digest, bytes } = await hashFile(manifest.path);
    if (digest !== manifest.sha256 || bytes !== manifest.bytes) {
      throw new CodedError(
        "data_loss",
        `image ${manifest.imageId} at ${manifest.path} was changed after it was verified; remove it and fetch it again`,
      );
    }
  }

  /** Downloads, verifies and publishes an image. Fails with `invalid_argument`, `unavailable` or `data_loss`. */
  async fetch(request: FetchRequest, signal?: AbortSignal): Promise<Manifest> {
    const { imageId, url, sha256 } = request;
    if (!artifactIdPattern.test(imageId))
      throw new CodedError(
        "invalid_argument",
        `image id ${JSON.stringify(imageId)} is not usable as a file name`,
      );
    if (!digestPattern.test(sha256))
      throw new CodedError("invalid_argument", "the digest must be 64 lower-case hex digits (SHA-256)");
    await ensureFolder(this.#directory, { setting: "image folder", mode: 0o755 });
    const target = this.pathOf(sha256);
    let bytes = await this.#existing(target, sha256);
    if (bytes === undefined) bytes = await this.#download(request, target, signal);
    const manifest: Manifest = {
      imageId,
      sourceUrl: url,
      sha256,
      path: target,
      bytes,
      acquiredAt: formatTime(this.#edges.clock.now()),
      bootValidated: false,
    };
    await this.#publish(manifest);
    return manifest;
  }

  async #existing(target: string, sha256: string): Promise<number | undefined> {
    const found = await stat(target).catch(() => undefined);
    if (!found) return undefined;
    const { digest, bytes } = await hashFile(target);
    if (digest === sha256) return bytes;
    throw new CodedError(
      "data_loss",
      `${target} exists and is not what its name says; remove it and fetch again`,
    );
  }

  async #download(request: FetchRequest, target: string, signal: AbortSignal | undefined): Promise<number> {
    const partial = join(this.#directory, `.${request.sha256}.partial`);
    const limit = new AbortController();
    const timer = this.#edges.clock.timer(maxDownloadMs, () => limit.abort());
    const stop = signal ? AbortSignal.any([signal, limit.signal]) : limit.signal;
    try {
      const file = await open(partial, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
      try {
        await this.#receive(file, request, stop);
        await file.sync();
      } catch (error) {
        // What holds nothing is nothing to go on from.
        if ((await file.stat()).size === 0) await unlink(partial);
        throw error;
      } finally {
        await file.close();
      }
      const { digest, bytes } = await hashFile(partial);
      if (digest !== request.sha256) {
        await unlink(partial);
        throw new CodedError(
          "data_loss",
          `the download is ${digest}, not ${request.sha256}: nothing was kept`,
        );
      }
      await publishFile(partial, target);
      return bytes;
    } catch (error) {
      if (limit.signal.aborted) {
        throw new CodedError(
          "deadline_exceeded",
          `the download took longer than ${maxDownloadMs / 60_000} minutes; run it again to go on`,
        );
      }
      if (error instanceof CodedError) throw error;
      throw new CodedError(
        "unavailable",
        `the download was interrupted: ${messageOf(error)}; run it again to go on`,
        { cause: error },
      );
    } finally {
      timer.clear();
    }
  }

  async #receive(file: FileHandle, request: FetchRequest, signal: AbortSignal): Promise<void> {
    let offset = (await file.stat()).size;
    const answer = await this.#outbound.stream({
      method: "GET",
      url: request.url,
      httpsOnly: true,
      redirects: maxRedirects,
      headers: {
        accept: "application/octet-stream, */*",
        ...(offset > 0 ? { range: `bytes=${offset}-` } : {}),
      },
      timeoutMs: 0,
      maxBytes: 0,
      signal,
    });
    if (answer.status === 416 && offset > 0) return void answer.body.destroy();
    const resumed = answer.status === 206 && offset > 0 && startsAt(answer.headers["content-range"], offset);
    if (answer.status !== 200 && !resumed) {
      answer.body.destroy();
      throw new CodedError("unavailable", `the source answered ${answer.status}`);
    }
    if (!resumed && offset > 0) {
      await file.truncate(0);
      offset = 0;
    }
    const length = Number(answer.headers["content-length"]);
    const total = Number.isFinite(length) ? offset + length : undefined;
    const tooLarge = new CodedError("payload_too_large", `the image is larger than ${this.#maxBytes} bytes`);
    if (total !== undefined && total > this.#maxBytes) {
      answer.body.destroy();
      await file.truncate(0);
      throw tooLarge;
    }
    for await (const chunk of answer.body as AsyncIterable<Buffer>) {
      if (offset + chunk.length > this.#maxBytes) {
        answer.body.destroy();
        await file.truncate(0);
        throw tooLarge;
      }
      await file.write(chunk, 0, chunk.length, offset);
      offset += chunk.length;
      request.onProgress?.(offset, total);
    }
    if (total !== undefined && offset !== total) throw new Error(`received ${offset} of ${total} bytes`);
  }

  async #publish(manifest: Manifest): Promise<void> {
    const file = join(this.#directory, `${manifest.imageId}.json`);
    const temporary = `${file}.${this.#edges.random.uuid()}`;
    await writeFile(temporary, `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o644, flag: "wx" });
    await rename(temporary, file);
  }
}

/** Whether a partial answer is the part that was asked for. */
function startsAt(contentRange: string | undefined, offset: number): boolean {
  return new RegExp(`^bytes ${offset}-`).test(contentRange ?? "");
}

/** Gives a verified file its name without ever replacing one that is there. */
async function publishFile(partial: string, target: string): Promise<void> {
  const file = await open(partial, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    await file.chmod(0o444);
  } finally {
    await file.close();
  }
  try {
    await link(partial, target);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
  await unlink(partial);
}

async function hashFile(path: string): Promise<{ digest: string; bytes: number }> {
  const hash = createHash("sha256");
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  let bytes = 0;
  for await (const chunk of file.createReadStream({ highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { digest: hash.digest("hex"), bytes };
}

/**
 * The files every page needs, from this package, with addresses that carry a hash of their content: cached for ever,
 * never stale, no other host involved. No authentication: they hold nothing of anybody.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";

/** Where assets are served. */
export const assetPrefix = "/static/vendor/";

/** One file. */
export interface Asset {
  readonly body: Buffer;
  readonly contentType: string;
}

const types: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".woff2": "font/woff2",
};

const files = ["kit.css", "htmx.js", "app.js", "hanken-grotesk.woff2", "jetbrains-mono.woff2"] as const;
/** A file of the kit. */
export type AssetName = (typeof files)[number];

interface Loaded {
  readonly byPath: ReadonlyMap<string, Asset>;
  readonly paths: ReadonlyMap<string, string>;
}

let loaded: Loaded | undefined;

function load(): Loaded {
  if (loaded) return loaded;
  const byPath = new Map<string, Asset>();
  const paths = new Map<string, string>();
  const add = (name: string, body: Buffer): void => {
    const extension = path.extname(name);
    const hash = createHash("sha256").update(body).digest("hex").slice(0, 12);
    const address = `${assetPrefix}${name.slice(0, -extension.length)}.${hash}${extension}`;
    byPath.set(address, { body, contentType: types[extension] ?? "application/octet-stream" });
    paths.set(name, address);
  };
  const read = (name: string): Buffer => readFileSync(path.join(import.meta.dirname, "vendor", name));
  for (const name of files) if (name !== "kit.css") add(name, read(name));
  // The sheet names its fonts by their hashed addresses, so it is added last.
  const sheet = read("kit.css")
    .toString("utf8")
    .replace(/url\("?([a-z-]+\.woff2)"?\)/g, (_, font: string) => `url("${paths.get(font) ?? font}")`);
  add("kit.css", Buffer.from(sheet));
  loaded = { byPath, paths };
  return loaded;
}

/** The address of a file, with its hash. */
export function assetPath(name: AssetName): string {
  return load().paths.get(name) ?? `${assetPrefix}${name}`;
}

/** The file at an address, or `undefined`. */
export function assetAt(address: string): Asset | undefined {
  return load().byPath.get(address);
}

/**
 * Makes everything under `src/vendor/`: the style sheet (Tailwind over our tokens), htmx, our own script and the
 * fonts, all from locked packages, so that no page ever asks another host. The result is committed and compared
 * in the check.
 */
import { execFile } from "node:child_process";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import path from "node:path";
import { promisify } from "node:util";

const here = path.resolve(import.meta.dirname, "..");
const modules = path.resolve(here, "../../node_modules");
const vendor = path.join(here, "src/vendor");

await mkdir(vendor, { recursive: true });
await promisify(execFile)(
  path.join(modules, ".bin/tailwindcss"),
  ["--input", path.join(here, "styles/kit.css"), "--output", path.join(vendor, "kit.css"), "--minify"],
  { cwd: here },
);
for (const [from, to] of [
  [
    "@fontsource-variable/hanken-grotesk/files/hanken-grotesk-latin-wght-normal.woff2",
    "hanken-grotesk.woff2",
  ],
  [
    "@fontsource-variable/jetbrains-mono/files/jetbrains-mono-latin-wght-normal.woff2",
    "jetbrains-mono.woff2",
  ],
] as const) {
  await copyFile(path.join(modules, from), path.join(vendor, to));
}
const htmx = await readFile(path.join(modules, "htmx.org/dist/htmx.min.js"), "utf8");
await writeFile(
  path.join(vendor, "htmx.js"),
  htmx.replace(/\n?\/\/# sourceMappingURL=.*$/m, "").trimEnd() + "\n",
);
const script = await readFile(path.join(here, "client/app.ts"), "utf8");
await writeFile(path.join(vendor, "app.js"), stripTypeScriptTypes(script));

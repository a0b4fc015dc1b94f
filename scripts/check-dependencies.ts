/**
 * Supply chain: licences of everything installed, a line in docs/dependencies.md for every direct
 * dependency, exact pins, and a software bill of materials (CycloneDX 1.5) in `.cache/sbom.json`.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { root } from "./command.ts";

/** Licences that an Apache-2.0 product may depend on. */
const permitted = new Set([
  "MIT",
  "ISC",
  "0BSD",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "BlueOak-1.0.0",
  "MPL-2.0",
  "CC0-1.0",
  "CC-BY-4.0",
  "PSF-2.0",
  "BSD-0-Clause",
  "CC-BY-3.0",
  "Unlicense",
  "Python-2.0",
  "OFL-1.1",
  "WTFPL",
  "MIT-0",
  "BSD",
]);

interface Locked {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly integrity: string;
  readonly development: boolean;
}

/** Checks the lock file; prints one line per finding. */
export async function checkDependencies(): Promise<boolean> {
  const findings: string[] = [];
  const locked = await readLock();
  for (const { name, version, license } of locked) {
    const choices = license.replace(/[()]/g, "").split(/ OR /);
    const ok = choices.some((choice) => choice.split(/ AND /).every((part) => permitted.has(part.trim())));
    if (!ok)
      findings.push(
        `${name}@${version}: licence ${JSON.stringify(license)} is not on the permitted list of scripts/check-dependencies.ts`,
      );
  }
  const documented = await readFile(path.join(root, "docs/dependencies.md"), "utf8");
  for (const [name, version] of await directDependencies()) {
    if (!/^\d/.test(version)) findings.push(`${name}: pin an exact version instead of ${version}`);
    if (!documented.includes(`\`${name}\``))
      findings.push(`${name}: say in docs/dependencies.md what it saves us`);
  }
  await writeBill(locked);
  for (const finding of findings) console.error(finding);
  return findings.length === 0;
}

async function readJson(file: string): Promise<Record<string, unknown>> {
  const value: unknown = JSON.parse(await readFile(path.join(root, file), "utf8"));
  if (typeof value !== "object" || value === null) throw new Error(`${file} is not a JSON object`);
  return Object.fromEntries(Object.entries(value));
}

function entries(value: unknown): [string, unknown][] {
  return typeof value === "object" && value !== null ? Object.entries(value) : [];
}

function text(value: unknown, key: string): string {
  const found = entries(value).find(([name]) => name === key)?.[1];
  return typeof found === "string" ? found : "";
}

async function readLock(): Promise<Locked[]> {
  const lock = await readJson("package-lock.json");
  const result: Locked[] = [];
  for (const [place, entry] of entries(lock["packages"])) {
    if (!place.startsWith("node_modules/") || text(entry, "version") === "") continue;
    const name = place.slice(place.lastIndexOf("node_modules/") + "node_modules/".length);
    const development = entries(entry).some(([key, value]) => key === "dev" && value === true);
    let license = text(entry, "license");
    if (license === "") {
      // Older packages state it only in their own manifest; a platform package that is not installed has none here.
      const manifest = await readJson(path.join(place, "package.json")).catch(() => undefined);
      if (manifest === undefined) continue;
      license =
        text(manifest, "license") ||
        entries(manifest["licenses"])
          .map(([, item]) => text(item, "type"))
          .join(" OR ");
    }
    result.push({
      name,
      version: text(entry, "version"),
      license,
      integrity: text(entry, "integrity"),
      development,
    });
  }
  return result;
}

async function directDependencies(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const main = await readJson("package.json");
  const workspaces = entries(main["workspaces"]).map(([, folder]) => `${String(folder)}/package.json`);
  for (const manifest of [main, ...(await Promise.all(workspaces.map(readJson)))]) {
    for (const field of ["dependencies", "devDependencies", "optionalDependencies"]) {
      for (const [name, version] of entries(manifest[field])) {
        if (!name.startsWith("@kontinuum/")) found.set(name, String(version));
      }
    }
  }
  return found;
}

async function writeBill(locked: readonly Locked[]): Promise<void> {
  const bill = {
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    components: locked.map(({ name, version, license, development }) => ({
      type: "library",
      name,
      version,
      purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
      scope: development ? "excluded" : "required",
      licenses: [{ expression: license }],
    })),
  };
  await mkdir(path.join(root, ".cache"), { recursive: true });
  await writeFile(path.join(root, ".cache/sbom.json"), JSON.stringify(bill, undefined, 2));
}

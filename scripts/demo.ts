/**
 * `make demo`: from an empty folder to a joined zone, on loopback. `--once` ends when the zone is ready.
 */
import { existsSync } from "node:fs";
import path from "node:path";
import { runDemo } from "../packages/kontinuum/src/index.ts";
import { tool } from "./tools.ts";

/** Folder with kubectl, for whoever has none: it is shown with what to try next. */
async function toolsFolder(): Promise<string | undefined> {
  const own = (process.env["PATH"] ?? "")
    .split(path.delimiter)
    .some((folder) => existsSync(path.join(folder, "kubectl")));
  return own ? undefined : path.dirname(await tool("kubectl"));
}

const root = path.resolve(import.meta.dirname, "..");
const abort = new AbortController();
const stop = (): void => {
  if (abort.signal.aborted) process.exit(130);
  abort.abort();
};
process.on("SIGINT", stop);
process.on("SIGTERM", stop);

const unknown = process.argv.slice(2).find((argument) => argument !== "--once");
if (unknown !== undefined) {
  process.stderr.write(`demo: unknown argument ${JSON.stringify(unknown)}; it takes --once\n`);
  process.exit(2);
}
process.exitCode = await runDemo({
  dir: process.env["KONTINUUM_DEMO_DIR"] ?? path.join(root, ".demo"),
  once: process.argv.includes("--once"),
  tools: await toolsFolder(),
  helm: process.env["KONTINUUM_HELM"] ?? (await tool("helm")),
  signal: abort.signal,
  write: (text) => process.stdout.write(text),
});
process.exit();

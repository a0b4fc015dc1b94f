/**
 * `make demo`: from an empty folder to a joined zone, on loopback. `--once` ends when the zone is ready; `clean` removes
 * what a demo left in `.demo/`.
 */
import { existsSync } from "node:fs";
import path from "node:path";
import { cleanDemo, runDemo } from "../packages/kontinuum/src/index.ts";
import { tool } from "./tools.ts";

const root = path.resolve(import.meta.dirname, "..");
const usual = path.join(root, ".demo");
const write = (text: string): unknown => process.stdout.write(text);

function fail(line: string, code: number): never {
  process.stderr.write(`demo: ${line}\n`);
  process.exit(code);
}

const isOnPath = (name: string): boolean =>
  (process.env["PATH"] ?? "").split(path.delimiter).some((folder) => existsSync(path.join(folder, name)));

/** helm of the locked package; where that has none, the one on PATH. */
async function findHelm(): Promise<string> {
  try {
    return await tool("helm");
  } catch (error) {
    if (isOnPath("helm")) return "";
    return fail(
      `${error instanceof Error ? error.message : String(error)}, or name one in KONTINUUM_HELM`,
      5,
    );
  }
}

/** Folder with kubectl, for whoever has none: it is shown with what to try next. */
async function toolsFolder(): Promise<string | undefined> {
  if (isOnPath("kubectl")) return undefined;
  return tool("kubectl").then(
    (program) => path.dirname(program),
    () => undefined,
  );
}

async function demo(args: readonly string[]): Promise<number> {
  if (args[0] === "clean" && args.length === 1) return cleanDemo(usual, write);
  const unknown = args.find((argument) => argument !== "--once");
  if (unknown !== undefined) fail(`unknown argument ${JSON.stringify(unknown)}; it takes --once`, 2);
  const abort = new AbortController();
  const stop = (): void => {
    if (abort.signal.aborted) process.exit(130);
    abort.abort();
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  return runDemo({
    dir: process.env["KONTINUUM_DEMO_DIR"] ?? usual,
    once: args.includes("--once"),
    tools: await toolsFolder(),
    helm: process.env["KONTINUUM_HELM"] ?? (await findHelm()),
    signal: abort.signal,
    write,
  });
}

process.exit(await demo(process.argv.slice(2)));

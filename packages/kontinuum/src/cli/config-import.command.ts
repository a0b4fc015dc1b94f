/**
 * `kontinuum config import`: takes a kubeconfig into the operator's own, asking before it overwrites.
 */
import { chmod, readFile, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import { createInterface } from "node:readline/promises";
import { Command, type CommandUnknownOpts } from "@commander-js/extra-typings";
import { CodedError, ensureFolder, isObject, messageOf, type JsonObject } from "@kontinuum/std";
import type { Terminal } from "./terminal.ts";

/** Largest kubeconfig, bytes. */
const maxBytes = 1024 * 1024;

/** The command group `config`. */
export function configCommand(terminal: Terminal): CommandUnknownOpts {
  const importing = new Command("import")
    .description("Merge a kubeconfig into your own: from a file, or pasted (end with Ctrl-D).")
    .argument("[path]", "kubeconfig, YAML or JSON")
    .allowExcessArguments(false)
    .addHelpText(
      "after",
      `
Writes to the first file of $KUBECONFIG, else ~/.kube/config.

Examples:
  kontinuum config import kontinuum-kubeconfig.yaml
  kontinuum config import < kontinuum-kubeconfig.yaml`,
    )
    .action(async (file) => {
      const { mergeKubeconfig } = await import("./kubeconfig-merge.ts");
      const { kubeconfigFiles } = await import("./operator-kubeconfig.ts");
      const { stringify } = await import("yaml");
      const text = file === undefined ? await readPaste(terminal) : await readGiven(file);
      const target = kubeconfigFiles({}, terminal.environment)[0] ?? "";
      const present = await readTarget(target);
      const merged = await mergeKubeconfig(
        present,
        await parseKubeconfig(text, file ?? "the pasted text"),
        (question) => confirm(terminal, question),
      );
      await replaceFile(target, stringify(merged));
      terminal.stdout.write(`Imported into ${target}\n`);
    });
  const group = new Command("config").description("Your own access to the server.");
  group.addCommand(importing);
  return group;
}

async function readGiven(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new CodedError("not_found", `cannot read ${file}: ${messageOf(error)}`);
  }
}

async function readPaste(terminal: Terminal): Promise<string> {
  if (terminal.stdin.isTTY)
    terminal.stderr.write("Paste the kubeconfig, then press Ctrl-D on an empty line:\n");
  let text = "";
  for await (const chunk of terminal.stdin) {
    if (terminal.signal.aborted) throw new CodedError("cancelled", "aborted");
    text += String(chunk);
    if (text.length > maxBytes)
      throw new CodedError("payload_too_large", `the pasted text is larger than ${maxBytes} bytes`);
  }
  if (terminal.signal.aborted) throw new CodedError("cancelled", "aborted");
  if (text.trim() === "")
    throw new CodedError("invalid_argument", "nothing was pasted: pass a path or paste a kubeconfig");
  return text;
}

async function parseKubeconfig(text: string, source: string): Promise<JsonObject> {
  const { parse } = await import("yaml");
  let value: unknown;
  try {
    value = parse(text, { maxAliasCount: 0 });
  } catch (error) {
    throw new CodedError(
      "invalid_argument",
      `${source} is not a kubeconfig: ${messageOf(error).split("\n")[0] ?? ""}`,
    );
  }
  if (!isObject(value) || value["kind"] !== "Config") {
    throw new CodedError("invalid_argument", `${source} is not a kubeconfig: its kind is not Config`);
  }
  return value;
}

async function readTarget(file: string): Promise<JsonObject> {
  try {
    return await parseKubeconfig(await readFile(file, "utf8"), file);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return {};
    throw error;
  }
}

/** Written beside and renamed over, so that an abort at any point leaves the old file whole. */
async function replaceFile(file: string, text: string): Promise<void> {
  const temporary = `${file}.kontinuum-${process.pid}`;
  await ensureFolder(path.dirname(file), { setting: `kubeconfig ${file}` });
  await writeFile(temporary, text, { mode: 0o600 });
  await chmod(temporary, 0o600);
  await rename(temporary, file);
}

async function confirm(terminal: Terminal, question: string): Promise<boolean> {
  // Without a person there is nobody to say yes.
  if (!terminal.stdin.isTTY) return false;
  const reader = createInterface({ input: terminal.stdin, output: process.stderr });
  try {
    const answer = await reader.question(`${question} [y/N] `, { signal: terminal.signal });
    return /^y(es)?$/i.test(answer.trim());
  } catch {
    throw new CodedError("cancelled", "aborted");
  } finally {
    reader.close();
  }
}

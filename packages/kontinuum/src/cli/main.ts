/**
 * Running a command line: one line for a failure, the exit code of its kind, never a stack trace.
 */
import { CommanderError } from "commander";
import { systemEdges, toCoded, type CodedError } from "@kontinuum/std";
import { createProgram } from "./program.ts";
import type { Terminal } from "./terminal.ts";

/** Runs `args` (without node and script) and resolves with the exit code. */
export async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  const program = createProgram(terminal);
  try {
    await program.parseAsync([...args], { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return usageExit(error);
    return report(error, terminal);
  }
}

// Commander printed its own line already. Help and version are no failures.
function usageExit(error: CommanderError): number {
  return error.exitCode === 0 ? 0 : 2;
}

function report(error: unknown, terminal: Terminal): number {
  const coded: CodedError = toCoded(error);
  if (coded.code === "cancelled") {
    terminal.stderr.write("Aborted.\n");
    return coded.meaning.exit;
  }
  const text = coded.code === "internal" ? describeUnexpected(coded.cause ?? coded) : coded.message;
  terminal.stderr.write(`kontinuum: ${text}\n`);
  return coded.meaning.exit;
}

// System errors (port in use, no permission) name the thing well enough; the rest is our own mistake.
function describeUnexpected(cause: unknown): string {
  if (cause instanceof Error && "code" in cause && typeof cause.code === "string") return cause.message;
  const text = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
  return `unexpected failure, please report it: ${text.split("\n")[0] ?? ""}`;
}

/** Runs this process's own command line and sets its exit code. */
export async function runMain(): Promise<void> {
  const abort = new AbortController();
  const stop = (): void => {
    // Asked twice: whoever is in a hurry gets their prompt back.
    if (abort.signal.aborted) process.exit(130);
    abort.abort();
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  // Started over an IPC channel: without the parent there is nobody to stop this process later.
  if (process.connected) process.once("disconnect", () => abort.abort());
  process.exitCode = await main(process.argv.slice(2), {
    stdout: process.stdout,
    stderr: process.stderr,
    stdin: process.stdin,
    environment: process.env,
    edges: systemEdges(),
    signal: abort.signal,
  });
  if (process.connected) process.disconnect();
  // Whatever a failed command left open (a timer, a socket) must not keep a finished program alive.
  process.stdout.write("", () => process.exit());
}

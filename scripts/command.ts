/**
 * Running the programs that make up a check: argument arrays, inherited output, a line for the result.
 */
import { spawn } from "node:child_process";
import path from "node:path";

/** The root of the project. */
export const root = path.resolve(import.meta.dirname, "..");

/** Runs a program of the project with its locked tools first on PATH; resolves with its exit code. */
export function runCommand(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: root,
      stdio: "inherit",
      env: {
        ...process.env,
        ...env,
        PATH: `${path.join(root, "node_modules/.bin")}:${process.env["PATH"] ?? ""}`,
      },
    });
    child.once("error", reject);
    child.once("exit", (code, signal) => resolve(code ?? (signal ? 1 : 0)));
  });
}

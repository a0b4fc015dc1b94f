/**
 * `krytonctl`: the machine API from a shell.
 *
 * By default a command prints the answer's body as JSON with two spaces of indent, as scripts of the
 * original expect; `-o table` is for people. Exit status 0; 1 when the API refused (its body is on
 * standard output) or could not be reached; 2 for a mistake in the command line.
 */
import { CommanderError } from "@commander-js/extra-typings";
import { messageOf, systemRandom } from "@kontinuum/std";
import { buildProgram } from "./ctl-commands.ts";
import { normalizeFlags } from "./flag-syntax.ts";
import { refuseOldNode } from "./node-version.ts";
import { ExitWith, processStreams, type Io } from "./io.ts";

/** Runs one command; the result is the exit status. */
export async function krytonctl(args: readonly string[], io: Io): Promise<number> {
  const program = buildProgram(io);
  if (args.length === 0) {
    io.out(program.helpInformation());
    return 2;
  }
  try {
    await program.parseAsync(normalizeFlags(program, args), { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof ExitWith) return error.status;
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0;
      if (error.code === "commander.unknownCommand") io.out(program.helpInformation());
      return 2;
    }
    io.err(`krytonctl: ${messageOf(error)}\n`);
    return 1;
  }
}

if (import.meta.main) {
  refuseOldNode("krytonctl");
  process.exitCode = await krytonctl(process.argv.slice(2), {
    ...processStreams("krytonctl"),
    env: process.env,
    random: systemRandom,
  });
}

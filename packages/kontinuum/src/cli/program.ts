/**
 * The command tree of `kontinuum`. Each command lives in its own module and loads what it needs when it
 * runs, so that `--help` answers at once.
 */
import { Command, type CommandUnknownOpts } from "@commander-js/extra-typings";
import { version } from "../version.ts";
import { completionCommand } from "./completion.command.ts";
import { configCommand } from "./config-import.command.ts";
import { instanceCommand } from "./instance.command.ts";
import { kmsCommand } from "./kms.command.ts";
import { serveCommand } from "./serve.command.ts";
import { simulateCommand } from "./simulate.command.ts";
import { storeCommand } from "./store.command.ts";
import type { Terminal } from "./terminal.ts";
import { zoneCommand } from "./zone.command.ts";

const exitCodes = `
Exit codes:
  0  done            3  not found         6  unavailable, or not in time
  1  failed          4  not permitted     130  aborted
  2  bad input       5  conflict with what exists
  7  data damaged or lost`;

/** The root command. */
export function createProgram(terminal: Terminal): CommandUnknownOpts {
  const program = new Command("kontinuum")
    .description("Turns machines into clusters and zones, behind one Kubernetes-style API.")
    .version(version)
    .showSuggestionAfterError()
    .addHelpText("after", exitCodes);
  const commands = [
    serveCommand(terminal),
    zoneCommand(terminal),
    instanceCommand(terminal),
    storeCommand(terminal),
    kmsCommand(terminal),
    simulateCommand(terminal),
    configCommand(terminal),
    new Command("version")
      .description("Print the version.")
      .action(() => void terminal.stdout.write(`${version}\n`)),
    completionCommand(terminal, () => program),
  ];
  for (const command of commands) program.addCommand(command);
  return settle(program, terminal, program.name());
}

/** Gives a command and all below it, called `name` with its parents, the same way of ending and the terminal's output. */
function settle<Root extends CommandUnknownOpts>(command: Root, terminal: Terminal, name: string): Root {
  command.exitOverride();
  command.configureOutput({
    writeOut: (text) => void terminal.stdout.write(text),
    writeErr: (text) => void terminal.stderr.write(text),
    outputError: (text, write) => write(mistake(text, name)),
  });
  for (const child of command.commands) settle(child, terminal, `${name} ${child.name()}`);
  return command;
}

/** Commander's words as one line that says where to look; a line of ours stays as it is. */
function mistake(text: string, name: string): string {
  if (!text.startsWith("error: ")) return text;
  const line = text
    .slice("error: ".length)
    .trim()
    .replaceAll(/\s*\n\s*/g, " ");
  return `kontinuum: ${line}; see ${name} --help\n`;
}

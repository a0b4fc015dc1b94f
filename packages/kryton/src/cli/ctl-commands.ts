/**
 * The commands of `krytonctl`, put together.
 */
import { Command } from "@commander-js/extra-typings";
import { completionScript } from "./completion.ts";
import { Context, examples } from "./ctl-context.ts";
import { addMachineCommands } from "./ctl-machines.ts";
import { addServiceCommands } from "./ctl-service.ts";
import { addSnapshotCommands } from "./ctl-snapshots.ts";
import { generateToken, hashToken } from "./generate-token.ts";
import type { Io } from "./io.ts";
import { makeKeys } from "./make-keys.ts";

/** Builds the program; nothing runs until it is given arguments. */
export function buildProgram(io: Io): Command {
  const context = new Context(io);
  const program: Command = new Command("krytonctl")
    .description("Talks to the Kryton machine API at KRYTON_URL with KRYTON_TOKEN.")
    .exitOverride()
    .configureOutput({ writeOut: io.out, writeErr: io.err })
    .configureHelp({ showGlobalOptions: true })
    .showSuggestionAfterError(true);
  addMachineCommands(program, context);
  addSnapshotCommands(program, context);
  addServiceCommands(program, context);
  program
    .command("generate-token")
    .description("a new API token")
    .addHelpText("after", examples("generate-token"))
    .action(() => io.out(`${generateToken(io.random)}\n`));
  program
    .command("hash-token")
    .description("the digest of a token, for a keys file")
    .argument("<token>")
    .addHelpText("after", examples('hash-token "$TOKEN"'))
    .action((token) => io.out(`${hashToken(token)}\n`));
  program
    .command("make-keys")
    .description("a keys file with one administrator, and its token, unless both exist")
    .addHelpText("after", examples("make-keys"))
    .addHelpText(
      "after",
      "\nKRYTON_KEYS_DIR (default ~/.kryton), KRYTON_API_KEYS_FILE, KRYTON_TOKEN_FILE and KRYTON_KEY_NAME say where and who;\nKRYTON_ROTATE_KEYS=true replaces both files.\n",
    )
    .action(async () => {
      const { keysFile, tokenFile, made } = await makeKeys(io.env, io.random);
      io.out(`${made ? "made" : "kept"} ${keysFile} and ${tokenFile}\n`);
    });
  program
    .command("completion")
    .description("completion script for a shell")
    .addArgument(program.createArgument("<shell>").choices(["bash", "zsh", "fish"]))
    .addHelpText(
      "after",
      "\nExamples:\n  source <(krytonctl completion bash)\n  krytonctl completion fish | source\n",
    )
    .action((shell) => io.out(completionScript(String(shell), program)));
  return program;
}

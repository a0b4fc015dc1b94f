/**
 * `kontinuum completion`: shell scripts that complete commands and flags, made from the command tree itself.
 */
import { Argument, Command, type CommandUnknownOpts } from "@commander-js/extra-typings";
import type { Terminal } from "./terminal.ts";

/** What completion reads of a command. */
interface Node {
  name(): string;
  readonly commands: readonly Node[];
  readonly options: readonly { readonly long?: string | undefined }[];
}

/** The command. `root` is asked for when it runs, because the tree is complete only then. */
export function completionCommand(terminal: Terminal, root: () => Node): CommandUnknownOpts {
  const shells = ["bash", "zsh", "fish"] as const;
  const command = new Command("completion")
    .description("Print a completion script for a shell.")
    .addArgument(new Argument("<shell>", "shell").choices(shells))
    .addHelpText(
      "after",
      `
Examples:
  source <(kontinuum completion bash)
  kontinuum completion fish > ~/.config/fish/completions/kontinuum.fish`,
    )
    .action((shell) => {
      const words = wordsByPath(root());
      terminal.stdout.write(shell === "fish" ? fish(words) : bash(words, shell));
    });
  return command;
}

/** Words that may follow each command path, by path (`kontinuum zone`). */
function wordsByPath(root: Node): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const visit = (node: Node, path: string): void => {
    const flags = node.options.flatMap(({ long }) => (long === undefined ? [] : [long]));
    found.set(path, [...node.commands.map((child) => child.name()), ...flags, "--help"]);
    for (const child of node.commands) visit(child, `${path} ${child.name()}`);
  };
  visit(root, root.name());
  return found;
}

function bash(words: ReadonlyMap<string, readonly string[]>, shell: "bash" | "zsh"): string {
  const cases = [...words].map(([path, list]) => `    "${path}") words="${list.join(" ")}" ;;`).join("\n");
  return `${shell === "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : ""}_kontinuum() {
  local path="kontinuum" word words=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) path="$path $word" ;; esac
  done
  case "$path" in
${cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _kontinuum kontinuum
`;
}

function fish(words: ReadonlyMap<string, readonly string[]>): string {
  const lines = [...words].map(([path, list]) => {
    const depth = path.split(" ").length;
    return `complete -c kontinuum -n 'test (string join " " (commandline -opc | string match -v -- "-*")) = "${path}"; and test (count (commandline -opc | string match -v -- "-*")) -eq ${depth}' -a '${list.join(" ")}'`;
  });
  return `complete -c kontinuum -f\n${lines.join("\n")}\n`;
}

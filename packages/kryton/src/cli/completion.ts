/**
 * Completion scripts, made from the commands themselves.
 */

interface Described {
  readonly commands: readonly {
    name(): string;
    description(): string;
    readonly options: readonly { readonly long?: string | undefined }[];
  }[];
}

/** The script for a shell: `bash`, `zsh` or `fish`. */
export function completionScript(shell: string, program: Described): string {
  const commands = program.commands.map((command) => ({
    name: command.name(),
    description: command.description().replaceAll("'", ""),
    flags: command.options.flatMap(({ long }) => (long ? [long] : [])),
  }));
  const names = commands.map(({ name }) => name).join(" ");
  if (shell === "fish") {
    return commands
      .map(
        ({ name, description, flags }) =>
          `complete -c krytonctl -n __fish_use_subcommand -a ${name} -d '${description}'\n` +
          flags
            .map(
              (flag) =>
                `complete -c krytonctl -n '__fish_seen_subcommand_from ${name}' -l ${flag.slice(2)}\n`,
            )
            .join(""),
      )
      .join("");
  }
  const cases = commands.map(({ name, flags }) => `    ${name}) words="${flags.join(" ")}" ;;\n`).join("");
  const body =
    `  local words="${names}"\n  if [ "$COMP_CWORD" -gt 1 ]; then\n    case "\${COMP_WORDS[1]}" in\n${cases}    *) words="" ;;\n    esac\n  fi\n` +
    `  COMPREPLY=( $(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}") )\n`;
  const bash = `_krytonctl() {\n${body}}\ncomplete -F _krytonctl krytonctl\n`;
  return shell === "zsh" ? `autoload -U +X bashcompinit && bashcompinit\n${bash}` : bash;
}

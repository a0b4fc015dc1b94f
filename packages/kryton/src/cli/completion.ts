/**
 * Completion scripts, made from the commands themselves: names, flags, and the values of flags that have a closed set.
 */

interface DescribedOption {
  readonly long?: string | undefined;
  readonly short?: string | undefined;
  readonly flags: string;
  readonly description: string;
  readonly argChoices?: readonly string[] | undefined;
  readonly hidden?: boolean;
  readonly required: boolean;
  readonly optional: boolean;
}

interface Described {
  readonly commands: readonly {
    name(): string;
    description(): string;
    readonly options: readonly DescribedOption[];
    readonly registeredArguments: readonly { readonly argChoices?: readonly string[] | undefined }[];
  }[];
}

interface Flag {
  readonly names: readonly string[];
  readonly description: string;
  readonly takesValue: boolean;
  readonly values: readonly string[];
  readonly isFile: boolean;
}

interface Entry {
  readonly name: string;
  readonly description: string;
  readonly flags: readonly Flag[];
  /** Values of its first argument. */
  readonly values: readonly string[];
}

/** The script for a shell: `bash`, `zsh` or `fish`. */
export function completionScript(shell: string, program: Described): string {
  const entries = program.commands.map((command): Entry => {
    const flags = command.options.filter(({ hidden }) => !hidden).map(flagOf);
    const values = command.registeredArguments[0]?.argChoices ?? [];
    return { name: command.name(), description: command.description(), flags, values };
  });
  if (shell === "fish") return fish(entries);
  return shell === "zsh" ? zsh(entries) : bash(entries);
}

function flagOf(option: DescribedOption): Flag {
  const names = [option.long, option.short].flatMap((name) => (name ? [name] : []));
  return {
    names,
    description: option.description,
    takesValue: option.required || option.optional,
    values: option.argChoices ?? [],
    isFile: /<(file|path|directory)>/.test(option.flags),
  };
}

function bash(entries: readonly Entry[]): string {
  const values = entries.flatMap(({ name, flags }) =>
    flags
      .filter(({ takesValue }) => takesValue)
      .map((flag) => {
        const patterns = flag.names.map((flagName) => `"${name} ${flagName}"`).join(" | ");
        if (flag.isFile) return `      ${patterns}) COMPREPLY=( $(compgen -f -- "$cur") ); return ;;\n`;
        return `      ${patterns}) COMPREPLY=( $(compgen -W "${flag.values.join(" ")}" -- "$cur") ); return ;;\n`;
      }),
  );
  const words = entries.map(({ name, flags, values: own }) => {
    const all = [...own, ...flags.flatMap(({ names }) => names.filter((flag) => flag.startsWith("--")))];
    return `      ${name}) words="${all.join(" ")}" ;;\n`;
  });
  return (
    `_krytonctl() {\n` +
    `  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" words=""\n` +
    `  if [ "$COMP_CWORD" -le 1 ]; then\n` +
    `    words="${entries.map(({ name }) => name).join(" ")}"\n` +
    `  else\n` +
    `    case "\${COMP_WORDS[1]} $prev" in\n${values.join("")}    esac\n` +
    `    case "\${COMP_WORDS[1]}" in\n${words.join("")}    esac\n` +
    `  fi\n` +
    `  COMPREPLY=( $(compgen -W "$words" -- "$cur") )\n` +
    `}\ncomplete -F _krytonctl krytonctl\n`
  );
}

function zsh(entries: readonly Entry[]): string {
  const prepare = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n";
  return `${prepare}${bash(entries)}`;
}

function fish(entries: readonly Entry[]): string {
  const lines = ["complete -c krytonctl -f"];
  for (const { name, description, flags, values } of entries) {
    lines.push(`complete -c krytonctl -n __fish_use_subcommand -a ${name} -d ${quoted(description)}`);
    const seen = `complete -c krytonctl -n '__fish_seen_subcommand_from ${name}'`;
    if (values.length > 0) lines.push(`${seen} -a ${quoted(values.join(" "))}`);
    for (const flag of flags) {
      const names = flag.names.map((one) =>
        one.startsWith("--") ? `-l ${one.slice(2)}` : `-s ${one.slice(1)}`,
      );
      const value = flag.isFile
        ? " -r -F"
        : flag.values.length > 0
          ? ` -x -a ${quoted(flag.values.join(" "))}`
          : flag.takesValue
            ? " -x"
            : "";
      lines.push(`${seen} ${names.join(" ")}${value} -d ${quoted(flag.description)}`);
    }
  }
  return `${lines.join("\n")}\n`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

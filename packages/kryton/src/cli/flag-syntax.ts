/**
 * Flags as clients of the original write them: one or two dashes, `--f v` or `--f=v`, before or after the
 * arguments.
 */

/** The part of a command this module looks at. */
interface Flags {
  readonly commands: readonly Flags[];
  readonly options: readonly { readonly long?: string | undefined }[];
}

/** Turns `-name` into `--name` for every long flag of the program; everything else stays. */
export function normalizeFlags(program: Flags, args: readonly string[]): string[] {
  const known = new Set(longFlags(program));
  let literal = false;
  return args.map((arg) => {
    if (literal) return arg;
    if (arg === "--") literal = true;
    const match = /^-([a-z][a-z0-9-]+)(=.*)?$/s.exec(arg);
    return match?.[1] !== undefined && known.has(`--${match[1]}`) ? `-${arg}` : arg;
  });
}

function longFlags(command: Flags): string[] {
  return [
    ...command.options.flatMap(({ long }) => (long ? [long] : [])),
    ...command.commands.flatMap(longFlags),
  ];
}

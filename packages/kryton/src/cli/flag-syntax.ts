/**
 * Flags as clients of the original write them: one or two dashes, `--f v` or `--f=v`, before or after the
 * arguments; a switch may be given as `--f=true` or `--f=false`.
 */

/** The part of an option this module looks at. */
interface Flag {
  readonly long?: string | undefined;
  isBoolean(): boolean;
}

/** The part of a command this module looks at. */
interface Flags {
  readonly commands: readonly Flags[];
  readonly options: readonly Flag[];
}

const yes = new Set(["1", "t", "T", "true", "TRUE", "True"]);
const no = new Set(["0", "f", "F", "false", "FALSE", "False"]);

/**
 * Turns `-name` into `--name` for every long flag of the program, and a switch with a value into the switch or
 * nothing; everything else stays.
 */
export function normalizeFlags(program: Flags, args: readonly string[]): string[] {
  const known = new Map(longFlags(program).map((flag) => [flag.long, flag]));
  let literal = false;
  return args.flatMap((arg) => {
    if (literal) return [arg];
    if (arg === "--") literal = true;
    const match = /^--?([a-z][a-z0-9-]+)(?:=(.*))?$/s.exec(arg);
    const flag = known.get(`--${match?.[1]}`);
    if (!match || !flag) return [arg];
    const value = match[2];
    if (value === undefined) return [`--${match[1]}`];
    if (flag.isBoolean() && yes.has(value)) return [`--${match[1]}`];
    if (flag.isBoolean() && no.has(value)) return [];
    return [`--${match[1]}=${value}`];
  });
}

function longFlags(command: Flags): Flag[] {
  return [...command.options, ...command.commands.flatMap(longFlags)];
}

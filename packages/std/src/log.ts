/**
 * Structured logs: one constant message, varying fields, no secrets.
 *
 * The real sink is pino. `Log` is the small interface everything else takes, so that a test can
 * collect lines and a library user can bring another logger.
 */
import pino from "pino";

/** Fields of a line. Never put a token, password, key or connection string with user info here. */
export type LogFields = Readonly<Record<string, unknown>>;

/** What the rest of the system knows of logging. */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** The same log with `fields` on every line. */
  with(fields: LogFields): Log;
}

/** Levels in rising order of importance. */
export const logLevels = ["debug", "info", "warn", "error"] as const;
/** One of {@link logLevels}. */
export type LogLevel = (typeof logLevels)[number];
/** `json`: a JSON object a line; `text`: for people. */
export type LogFormat = "json" | "text";

/** Field names whose values are replaced by `[redacted]` wherever they stand, as a second line of defence. */
export const redactedFields = [
  "authorization",
  "cookie",
  "password",
  "secret",
  "token",
  "key",
  "apiKey",
  "passphrase",
];

/** Options of {@link createLog}. */
export interface LogOptions {
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** Where lines go. Default: standard output. */
  readonly destination?: { write(line: string): unknown };
}

/** A log that writes lines through pino. */
export function createLog(options: LogOptions): Log {
  const target = options.destination ?? process.stdout;
  const destination =
    options.format === "text" ? { write: (line: string) => target.write(formatText(line)) } : target;
  const paths = redactedFields.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);
  const root = pino(
    {
      level: options.level,
      base: null,
      messageKey: "msg",
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths, censor: "[redacted]" },
      serializers: { err: pino.stdSerializers.err },
    },
    { write: (line: string) => void destination.write(line) },
  );
  return wrap(root);
}

function wrap(logger: pino.Logger): Log {
  return {
    debug: (message, fields) => logger.debug(fields ?? {}, message),
    info: (message, fields) => logger.info(fields ?? {}, message),
    warn: (message, fields) => logger.warn(fields ?? {}, message),
    error: (message, fields) => logger.error(fields ?? {}, message),
    with: (fields) => wrap(logger.child(fields)),
  };
}

function formatText(line: string): string {
  let entry: unknown;
  try {
    entry = JSON.parse(line);
  } catch {
    return line;
  }
  if (typeof entry !== "object" || entry === null) return line;
  const { level, time, msg, ...fields } = entry as Record<string, unknown>;
  const rest = Object.entries(fields)
    .map(([name, value]) => ` ${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join("");
  return `${String(time)} ${String(level).toUpperCase().padEnd(5)} ${String(msg)}${rest}\n`;
}

/** A log that drops everything. */
export const silentLog: Log = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  with: () => silentLog,
};

/**
 * Request bodies: bytes to a checked value.
 *
 * Known keys match in any letter case, the last duplicate wins, null means absent, unknown keys are
 * refused: what clients of the original rely on. Broken JSON, wrong types and unknown keys are told at
 * once; broken rules are collected, so that one answer names them all.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { isObject } from "@kontinuum/std";
import { z } from "zod";
import { invalidRequest, KrytonError } from "../model/errors.ts";

/** Greatest size of a request body, bytes. */
export const maxBodyBytes = 1024 * 1024;
/** Greatest nesting of a request body. */
const maxDepth = 32;

/** Reads a body; larger than {@link maxBodyBytes} is `INVALID_REQUEST`. */
export function readBody(incoming: IncomingMessage, outgoing: ServerResponse): Promise<Buffer> {
  const tooLarge = (): KrytonError => {
    // What is still coming is thrown away, so that the caller can read the answer; then the connection ends.
    outgoing.shouldKeepAlive = false;
    incoming.resume();
    return invalidRequest(`the request body must be at most ${maxBodyBytes} bytes`);
  };
  if (Number(incoming.headers["content-length"] ?? 0) > maxBodyBytes) return Promise.reject(tooLarge());
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    incoming.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBodyBytes) chunks.push(chunk);
      else reject(tooLarge());
    });
    incoming.once("end", () => resolve(Buffer.concat(chunks)));
    const early = (cause?: unknown): void =>
      reject(new KrytonError("INVALID_REQUEST", "the request body ended early", { cause }));
    incoming.once("error", early);
    incoming.once("close", early);
  });
}

/** A decoded body: `value` when every rule holds, otherwise the broken rules. */
export interface Decoded<T> {
  readonly value: T | undefined;
  /** The body as it came, for what has to be known before its rules are checked. */
  readonly raw: Readonly<Record<string, unknown>>;
  readonly violations: readonly string[];
}

/** Decodes JSON bytes with a schema. Throws for what is not a body of this shape at all. */
export function decodeBody<T>(bytes: Buffer, schema: z.ZodType<T>): Decoded<T> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw invalidRequest("the request body is not one valid JSON document");
  }
  if (!isObject(parsed)) throw invalidRequest("the request body must be a JSON object");
  const raw = fold(parsed, schema, 0);
  if (!isObject(raw)) throw invalidRequest("the request body must be a JSON object");
  const result = schema.safeParse(raw);
  if (result.success) return { value: result.data, raw, violations: [] };
  const refused: string[] = [];
  const violations: string[] = [];
  for (const issue of result.error.issues) {
    const path = pathOf(issue.path);
    if (issue.code === "unrecognized_keys") {
      for (const key of issue.keys) refused.push(`unknown field ${JSON.stringify(join(path, key))}`);
    } else if (issue.code === "invalid_type") {
      if (valueAt(raw, issue.path) === undefined) violations.push(`${path} is required`);
      else refused.push(`${path} must be of type ${issue.expected}`);
    } else {
      violations.push(`${path} ${ruleOf(issue)}`);
    }
  }
  if (refused.length > 0) throw invalidRequest(refused);
  return { value: undefined, raw, violations };
}

/** The value of a decoded body, or the broken rules as one `INVALID_REQUEST`. */
export function settled<T>(decoded: Decoded<T>): T {
  if (decoded.value === undefined) throw invalidRequest(decoded.violations);
  return decoded.value;
}

/** Renames keys to the letter case of the schema and drops nulls. */
function fold(value: unknown, schema: unknown, depth: number): unknown {
  if (depth > maxDepth) throw invalidRequest(`the request body is nested deeper than ${maxDepth}`);
  if (Array.isArray(value)) {
    const inner = unwrap(schema);
    const element = inner instanceof z.ZodArray ? inner.element : undefined;
    return value.map((item) => fold(item, element, depth + 1));
  }
  if (!isObject(value)) return value;
  const inner = unwrap(schema);
  const shape: Record<string, unknown> | undefined = inner instanceof z.ZodObject ? inner.shape : undefined;
  const names = new Map(Object.keys(shape ?? {}).map((name) => [name.toLowerCase(), name]));
  const folded: [string, unknown][] = [];
  for (const [key, item] of Object.entries(value)) {
    if (key === "__proto__") throw invalidRequest('unknown field "__proto__"');
    const name = names.get(key.toLowerCase()) ?? key;
    // Null means absent for a field there is; one that there is not stays, and is refused.
    if (item === null && (shape === undefined || Object.hasOwn(shape, name))) continue;
    folded.push([name, fold(item, shape?.[name], depth + 1)]);
  }
  return Object.fromEntries(folded);
}

function unwrap(schema: unknown): unknown {
  let inner = schema;
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodDefault) inner = inner.def.innerType;
  return inner;
}

function pathOf(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, key) => join(text, key), "") || "the request body";
}

function join(path: string, key: PropertyKey): string {
  if (typeof key === "number") return `${path}[${key}]`;
  return path === "" || path === "the request body" ? String(key) : `${path}.${String(key)}`;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let current = value;
  for (const key of path) {
    if (Array.isArray(current) && typeof key === "number") current = current[key];
    else if (isObject(current) && Object.hasOwn(current, String(key))) current = current[String(key)];
    else return undefined;
  }
  return current;
}

function ruleOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "too_small":
      return issue.origin === "string" ? "must not be empty" : `must be at least ${issue.minimum}`;
    case "too_big":
      return issue.origin === "array"
        ? `must have at most ${issue.maximum} entries`
        : `must be at most ${issue.maximum}`;
    case "invalid_format":
      return "pattern" in issue ? `must match ${issue.pattern}` : `must be a ${issue.format}`;
    case "invalid_key":
      return "is not a valid key";
    case "invalid_value":
      return `must be one of ${issue.values.map(String).join(", ")}`;
    default:
      return issue.message;
  }
}

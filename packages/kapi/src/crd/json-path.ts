/**
 * The JSONPath dialect of kubectl and of printer columns (kubernetes.io "JSONPath Support"): fields with
 * escaped dots, quoted names, indexes, slices, unions, wildcards, recursive descent and filters with one
 * comparison. Missing keys give no result instead of an error.
 *
 * Parsed once into steps; evaluation allocates nothing but its results and uses no regular expression.
 */
import { isObject } from "@kontinuum/std";
import { isNumber, own } from "../schema/json-value.ts";

/** Longest path text accepted. */
export const maxPathLength = 4096;

/** Most values one step may yield; more are cut off. Bounds `..` and `*` over large objects. */
export const maxPathResults = 100_000;

/** A text that is not a path in this dialect. */
export class JsonPathError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "JsonPathError";
  }
}

type Operand = { readonly literal: unknown } | { readonly steps: readonly Step[] };

type Step =
  | { readonly kind: "field"; readonly name: string }
  | { readonly kind: "wildcard" }
  | { readonly kind: "descend" }
  | {
      readonly kind: "slice";
      readonly from: number | undefined;
      readonly to: number | undefined;
      readonly by: number;
    }
  | { readonly kind: "index"; readonly index: number }
  | { readonly kind: "union"; readonly branches: readonly Step[] }
  | {
      readonly kind: "filter";
      readonly left: Operand;
      readonly operator: string;
      readonly right: Operand | undefined;
    };

const operators = ["==", "!=", "<=", ">=", "<", ">"];
const nameEnd = new Set([
  ".",
  "[",
  "]",
  "(",
  ")",
  " ",
  "=",
  "!",
  "<",
  ">",
  ",",
  "{",
  "}",
  "'",
  '"',
  "?",
  "@",
  "$",
  "&",
  "|",
]);

class PathParser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  fail(what: string): never {
    throw new JsonPathError(`${what} at position ${this.#at} of ${JSON.stringify(this.#text)}`);
  }

  #peek(): string {
    return this.#text[this.#at] ?? "";
  }

  #spaces(): void {
    while (this.#peek() === " ") this.#at++;
  }

  #take(token: string): boolean {
    if (!this.#text.startsWith(token, this.#at)) return false;
    this.#at += token.length;
    return true;
  }

  #expect(token: string): void {
    if (!this.#take(token)) this.fail(`expected ${JSON.stringify(token)}`);
  }

  whole(): readonly Step[] {
    if (this.#peek() === "$" || this.#peek() === "@") this.#at++;
    const steps = this.#steps(false);
    if (this.#at < this.#text.length) this.fail(`unexpected ${JSON.stringify(this.#peek())}`);
    return steps;
  }

  #steps(inFilter: boolean): readonly Step[] {
    const steps: Step[] = [];
    for (;;) {
      if (this.#take("..")) {
        steps.push({ kind: "descend" });
        if (this.#peek() !== "[") steps.push(this.#member());
      } else if (this.#take(".")) {
        if (this.#peek() === "[") continue;
        // A bare "." is the value itself.
        if (this.#peek() === "" && steps.length === 0) return steps;
        steps.push(this.#member());
      } else if (this.#peek() === "[") steps.push(this.#bracket());
      else if (steps.length === 0 && !inFilter && this.#peek() !== "") this.fail("unrecognized identifier");
      else return steps;
    }
  }

  #member(): Step {
    if (this.#take("*")) return { kind: "wildcard" };
    let name = "";
    for (;;) {
      const c = this.#peek();
      if (c === "\\") {
        this.#at++;
        name += this.#peek();
        this.#at++;
      } else if (c === "" || nameEnd.has(c)) break;
      else {
        name += c;
        this.#at++;
      }
    }
    if (name === "") this.fail("expected a field name");
    return { kind: "field", name };
  }

  #bracket(): Step {
    this.#expect("[");
    this.#spaces();
    if (this.#take("?(")) {
      const filter = this.#filter();
      this.#expect(")");
      this.#spaces();
      this.#expect("]");
      return filter;
    }
    const branches: Step[] = [];
    do {
      this.#spaces();
      branches.push(this.#bracketItem());
      this.#spaces();
    } while (this.#take(","));
    this.#expect("]");
    const [only] = branches;
    return branches.length === 1 && only ? only : { kind: "union", branches };
  }

  #bracketItem(): Step {
    const c = this.#peek();
    if (c === "'" || c === '"') return { kind: "field", name: this.#quoted() };
    if (this.#take("*")) return { kind: "wildcard" };
    const from = this.#integer();
    if (!this.#take(":")) {
      // Empty brackets are the first item, as in kubectl.
      if (from === undefined && this.#peek() !== "]") this.fail("expected an index, a name or a filter");
      return { kind: "index", index: from ?? 0 };
    }
    const to = this.#integer();
    const by = this.#take(":") ? (this.#integer() ?? 1) : 1;
    if (by <= 0) this.fail("a step must be greater than 0");
    return { kind: "slice", from, to, by };
  }

  #integer(): number | undefined {
    const start = this.#at;
    if (this.#peek() === "-") this.#at++;
    while (this.#peek() >= "0" && this.#peek() <= "9") this.#at++;
    const digits = this.#text.slice(start, this.#at);
    if (digits === "") return undefined;
    const value = Number(digits);
    if (!Number.isSafeInteger(value)) this.fail("invalid index");
    return value;
  }

  #quoted(): string {
    const quote = this.#peek();
    this.#at++;
    let value = "";
    for (;;) {
      const c = this.#peek();
      if (c === "") this.fail("unterminated string");
      this.#at++;
      if (c === quote) return value;
      if (c === "\\") {
        value += this.#peek();
        this.#at++;
      } else value += c;
    }
  }

  #filter(): Step {
    this.#spaces();
    const left = this.#operand();
    this.#spaces();
    const operator = operators.find((o) => this.#take(o));
    if (operator === undefined) return { kind: "filter", left, operator: "exists", right: undefined };
    this.#spaces();
    const right = this.#operand();
    this.#spaces();
    return { kind: "filter", left, operator, right };
  }

  #operand(): Operand {
    const c = this.#peek();
    if (c === "@" || c === "$") {
      this.#at++;
      return { steps: this.#steps(true) };
    }
    if (c === "." || c === "[") return { steps: this.#steps(true) };
    if (c === "'" || c === '"') return { literal: this.#quoted() };
    const start = this.#at;
    while (this.#peek() !== "" && !")=!<> ".includes(this.#peek())) this.#at++;
    const word = this.#text.slice(start, this.#at);
    if (word === "true" || word === "false") return { literal: word === "true" };
    const value = Number(word);
    if (word === "" || Number.isNaN(value)) this.fail("expected a value");
    return { literal: value };
  }
}

function compare(left: unknown, operator: string, right: unknown): boolean {
  if (operator === "==" || operator === "!=") {
    const equal = isNumber(left) && isNumber(right) ? left <= right && left >= right : left === right;
    return equal === (operator === "==");
  }
  const ordered =
    (isNumber(left) && isNumber(right)) || (typeof left === "string" && typeof right === "string");
  if (!ordered) return false;
  if (operator === "<") return left < right;
  if (operator === "<=") return left <= right;
  return operator === ">" ? left > right : left >= right;
}

function operandValue(operand: Operand, item: unknown): unknown {
  return "literal" in operand ? operand.literal : run(operand.steps, item)[0];
}

function descend(value: unknown, out: unknown[]): void {
  if (out.length >= maxPathResults || typeof value !== "object" || value === null) return;
  out.push(value);
  for (const item of Object.values(value)) descend(item, out);
}

function runStep(step: Step, value: unknown, out: unknown[]): void {
  switch (step.kind) {
    case "field": {
      const found = isObject(value) ? own(value, step.name) : undefined;
      if (found !== undefined) out.push(found);
      return;
    }
    case "wildcard":
      if (typeof value === "object" && value !== null)
        for (const item of Object.values(value)) out.push(item);
      return;
    case "descend":
      descend(value, out);
      return;
    case "index": {
      if (!Array.isArray(value)) return;
      const found: unknown = value[step.index < 0 ? value.length + step.index : step.index];
      if (found !== undefined) out.push(found);
      return;
    }
    case "slice": {
      if (!Array.isArray(value)) return;
      const place = (n: number): number => (n < 0 ? n + value.length : n);
      const to = Math.min(place(step.to ?? value.length), value.length);
      for (let i = Math.max(0, place(step.from ?? 0)); i < to; i += step.by) out.push(value[i]);
      return;
    }
    case "union":
      for (const branch of step.branches) runStep(branch, value, out);
      return;
    case "filter": {
      const items = Array.isArray(value) ? value : isObject(value) ? Object.values(value) : [];
      for (const item of items) {
        const left = operandValue(step.left, item);
        if (left === undefined) continue;
        if (!step.right || compare(left, step.operator, operandValue(step.right, item))) out.push(item);
      }
    }
  }
}

function run(steps: readonly Step[], root: unknown): readonly unknown[] {
  let values: unknown[] = [root];
  for (const step of steps) {
    const next: unknown[] = [];
    for (const value of values) {
      if (next.length >= maxPathResults) break;
      runStep(step, value, next);
    }
    values = next;
    if (values.length === 0) break;
  }
  return values;
}

/** A compiled path: all values it selects in `root`, in document order. */
export type JsonPath = (root: unknown) => readonly unknown[];

/**
 * Compiles a path such as `.status.conditions[?(@.type=="Ready")].status`, with or without braces.
 *
 * @throws JsonPathError when the text is not a path.
 */
export function compileJsonPath(text: string): JsonPath {
  if (text.length > maxPathLength) throw new JsonPathError(`path is longer than ${maxPathLength} characters`);
  const inner = text.startsWith("{") && text.endsWith("}") ? text.slice(1, -1) : text;
  const steps = new PathParser(inner).whole();
  return (root) => run(steps, root);
}

/**
 * The names of a simple path of fields only, such as `.spec.replicas` (scale and selectable fields), or
 * `undefined` for anything else. Names may be quoted in brackets.
 */
export function simplePath(text: string): readonly string[] | undefined {
  if (text.length > maxPathLength) return undefined;
  try {
    const names: string[] = [];
    for (const step of new PathParser(text).whole()) {
      if (step.kind !== "field") return undefined;
      names.push(step.name);
    }
    return text.startsWith(".") && names.length > 0 ? names : undefined;
  } catch (error) {
    if (error instanceof JsonPathError) return undefined;
    throw error;
  }
}

/**
 * Parses CEL (github.com/google/cel-spec, language definition), including optional syntax (`.?`, `[?]`, `{?k: v}`)
 * and the macros of the Kubernetes environments.
 *
 * Depth and size are bounded, so everything that walks a tree may recurse.
 */
import type { Expr, LoopMacro } from "./ast.ts";
import { childrenOf } from "./ast.ts";
import { errorAt, tokenize, type Token } from "./lexer.ts";
import { types } from "./type.ts";
import { CelUint } from "./value.ts";

/** Deepest nesting of an expression (the public implementation's parser limit). */
export const maxDepth = 250;

/** Most nodes of an expression. */
export const maxNodes = 20_000;

const reserved = new Set([
  "as",
  "break",
  "const",
  "continue",
  "else",
  "false",
  "for",
  "function",
  "if",
  "import",
  "in",
  "let",
  "loop",
  "namespace",
  "null",
  "package",
  "return",
  "true",
  "var",
  "void",
  "while",
]);

const relations = new Set(["==", "!=", "<", "<=", ">", ">="]);

const maxInt = 2n ** 63n - 1n;

class Parser {
  readonly #source: string;
  readonly #tokens: readonly Token[];
  #next = 0;
  #nodes = 0;
  readonly #depths = new WeakMap<Expr, number>();

  constructor(source: string) {
    this.#source = source;
    this.#tokens = tokenize(source);
  }

  #fail(token: Token, message: string): never {
    throw errorAt(this.#source, token.at, message);
  }

  get #token(): Token {
    const token = this.#tokens[Math.min(this.#next, this.#tokens.length - 1)];
    if (!token) throw new Error("no tokens");
    return token;
  }

  #is(text: string): boolean {
    const token = this.#token;
    return (token.kind === "punct" || (token.kind === "ident" && text === "in")) && token.text === text;
  }

  #take(text: string): boolean {
    if (!this.#is(text)) return false;
    this.#next++;
    return true;
  }

  #expect(text: string): void {
    if (!this.#take(text)) this.#unexpected(`'${text}'`);
  }

  #unexpected(expected: string): never {
    const token = this.#token;
    const found = token.kind === "end" ? "<EOF>" : token.text;
    return this.#fail(token, `Syntax error: mismatched input '${found}' expecting ${expected}`);
  }

  /** Registers a node: counts it and bounds its depth. */
  #node<T extends Expr>(expr: T): T {
    if (++this.#nodes > maxNodes)
      throw errorAt(this.#source, expr.at, `expression has more than ${maxNodes} nodes`);
    let depth = 0;
    for (const child of childrenOf(expr)) depth = Math.max(depth, this.#depths.get(child) ?? 0);
    if (depth + 1 > maxDepth)
      throw errorAt(this.#source, expr.at, `expression recursion limit exceeded: ${maxDepth}`);
    this.#depths.set(expr, depth + 1);
    return expr;
  }

  #call(at: number, name: string, args: readonly Expr[], target?: Expr): Expr {
    return this.#node({ kind: "call", at, name, target, args });
  }

  get #isAtEnd(): boolean {
    return this.#token.kind === "end";
  }

  whole(): Expr {
    if (this.#isAtEnd) this.#unexpected("an expression");
    const expr = this.#expr(0);
    if (!this.#isAtEnd) this.#unexpected("<EOF>");
    return expr;
  }

  #expr(depth: number): Expr {
    if (depth > maxDepth) this.#fail(this.#token, `expression recursion limit exceeded: ${maxDepth}`);
    const condition = this.#logical("||", depth);
    const { at } = this.#token;
    if (!this.#take("?")) return condition;
    const yes = this.#logical("||", depth + 1);
    this.#expect(":");
    const no = this.#expr(depth + 1);
    return this.#call(at, "_?_:_", [condition, yes, no]);
  }

  /** A chain of `||` or `&&`, built balanced so that long chains stay shallow. */
  #logical(operator: "||" | "&&", depth: number): Expr {
    const below = (): Expr => (operator === "||" ? this.#logical("&&", depth) : this.#relation(depth));
    const terms = [below()];
    const places: number[] = [];
    while (this.#is(operator)) {
      places.push(this.#token.at);
      this.#next++;
      terms.push(below());
    }
    const build = (from: number, to: number): Expr => {
      const only = terms[from];
      if (from === to && only) return only;
      const middle = (from + to) >> 1;
      return this.#call(places[middle] ?? 0, `_${operator}_`, [build(from, middle), build(middle + 1, to)]);
    };
    return build(0, terms.length - 1);
  }

  #relation(depth: number): Expr {
    let left = this.#sum(depth);
    for (;;) {
      const { at, text, kind } = this.#token;
      const isRelation = kind === "punct" ? relations.has(text) : kind === "ident" && text === "in";
      if (!isRelation) return left;
      this.#next++;
      const right = this.#sum(depth);
      left = this.#call(at, text === "in" ? "@in" : `_${text}_`, [left, right]);
    }
  }

  #sum(depth: number): Expr {
    let left = this.#product(depth);
    while (this.#is("+") || this.#is("-")) {
      const { at, text } = this.#token;
      this.#next++;
      left = this.#call(at, `_${text}_`, [left, this.#product(depth)]);
    }
    return left;
  }

  #product(depth: number): Expr {
    let left = this.#unary(depth);
    while (this.#is("*") || this.#is("/") || this.#is("%")) {
      const { at, text } = this.#token;
      this.#next++;
      left = this.#call(at, `_${text}_`, [left, this.#unary(depth)]);
    }
    return left;
  }

  #unary(depth: number): Expr {
    const token = this.#token;
    if (depth > maxDepth) this.#fail(token, `expression recursion limit exceeded: ${maxDepth}`);
    if (this.#take("!")) return this.#call(token.at, "!_", [this.#unary(depth + 1)]);
    if (this.#is("-")) {
      this.#next++;
      const next = this.#token;
      if (next.kind === "int" || next.kind === "double") {
        this.#next++;
        return this.#members(this.#literal(next, true), depth);
      }
      return this.#call(token.at, "-_", [this.#unary(depth + 1)]);
    }
    return this.#members(this.#primary(depth), depth);
  }

  #members(start: Expr, depth: number): Expr {
    let expr = start;
    for (;;) {
      const { at } = this.#token;
      if (this.#take(".")) {
        const optional = this.#take("?");
        const name = this.#fieldName();
        if (!optional && this.#take("(")) {
          const args = this.#args(")", depth);
          expr = this.#memberMacro(at, expr, name, args) ?? this.#call(at, name, args, expr);
        } else expr = this.#node({ kind: "select", at, operand: expr, field: name, test: false, optional });
      } else if (this.#take("[")) {
        const optional = this.#take("?");
        const index = this.#expr(depth + 1);
        this.#expect("]");
        expr = this.#call(at, optional ? "_[?_]" : "_[_]", [expr, index]);
      } else if (this.#is("{") && (expr.kind === "ident" || expr.kind === "select")) {
        return this.#fail(this.#token, "message literals are not supported: there are no message types");
      } else return expr;
    }
  }

  #fieldName(): string {
    const token = this.#token;
    if (
      token.kind !== "ident" ||
      token.text === "in" ||
      token.text === "true" ||
      token.text === "false" ||
      token.text === "null"
    )
      this.#unexpected("IDENTIFIER");
    this.#next++;
    return token.text;
  }

  #args(end: string, depth: number): readonly Expr[] {
    const args: Expr[] = [];
    if (this.#take(end)) return args;
    do args.push(this.#expr(depth + 1));
    while (this.#take(","));
    this.#expect(end);
    return args;
  }

  #primary(depth: number): Expr {
    const token = this.#token;
    switch (token.kind) {
      case "int":
      case "uint":
      case "double":
      case "string":
      case "bytes":
        this.#next++;
        return this.#literal(token, false);
      case "ident":
        return this.#identifier(token, depth);
      case "end":
        return this.#unexpected("an expression");
    }
    if (this.#take("(")) {
      const expr = this.#expr(depth + 1);
      this.#expect(")");
      return expr;
    }
    if (this.#take("[")) return this.#list(token.at, depth);
    if (this.#take("{")) return this.#map(token.at, depth);
    if (this.#take(".")) {
      const name = this.#token;
      if (name.kind !== "ident") this.#unexpected("IDENTIFIER");
      return this.#identifier(name, depth);
    }
    return this.#unexpected("an expression");
  }

  #identifier(token: Token, depth: number): Expr {
    const { text, at } = token;
    this.#next++;
    if (text === "true" || text === "false")
      return this.#node({ kind: "const", at, value: text === "true", type: types.bool });
    if (text === "null") return this.#node({ kind: "const", at, value: null, type: types.null });
    if (this.#take("(")) {
      const args = this.#args(")", depth);
      return text === "has" ? this.#has(token, args) : this.#call(at, text, args);
    }
    if (reserved.has(text)) this.#fail(token, `reserved identifier: ${text}`);
    return this.#node({ kind: "ident", at, name: text });
  }

  #has(token: Token, args: readonly Expr[]): Expr {
    const [arg] = args;
    if (args.length !== 1 || arg?.kind !== "select" || arg.optional)
      this.#fail(token, "invalid argument to has() macro");
    return this.#node({ ...arg, test: true });
  }

  #literal(token: Token, isNegative: boolean): Expr {
    const { at } = token;
    switch (token.kind) {
      case "int": {
        const value = isNegative ? -BigInt(token.text) : BigInt(token.text);
        if (value > maxInt || value < -maxInt - 1n) this.#fail(token, "invalid int literal");
        return this.#node({ kind: "const", at, value, type: types.int });
      }
      case "uint": {
        const value = BigInt(token.text);
        if (value >= 2n ** 64n) this.#fail(token, "invalid uint literal");
        return this.#node({ kind: "const", at, value: new CelUint(value), type: types.uint });
      }
      case "double": {
        const value = Number(token.text) * (isNegative ? -1 : 1);
        if (!Number.isFinite(value)) this.#fail(token, "invalid double literal");
        return this.#node({ kind: "const", at, value, type: types.double });
      }
      case "bytes":
        return this.#node({
          kind: "const",
          at,
          value: token.bytes,
          type: { kind: "bytes", max: token.bytes.length },
        });
      default: {
        const max = token.text.length;
        return this.#node({ kind: "const", at, value: token.text, type: { kind: "string", max } });
      }
    }
  }

  #list(at: number, depth: number): Expr {
    const items: { value: Expr; optional: boolean }[] = [];
    while (!this.#take("]")) {
      const optional = this.#take("?");
      items.push({ value: this.#expr(depth + 1), optional });
      if (this.#take(",")) continue;
      this.#expect("]");
      break;
    }
    return this.#node({ kind: "list", at, items });
  }

  #map(at: number, depth: number): Expr {
    const entries: { key: Expr; value: Expr; optional: boolean }[] = [];
    while (!this.#take("}")) {
      const optional = this.#take("?");
      const key = this.#expr(depth + 1);
      this.#expect(":");
      entries.push({ key, value: this.#expr(depth + 1), optional });
      if (this.#take(",")) continue;
      this.#expect("}");
      break;
    }
    return this.#node({ kind: "map", at, entries });
  }

  /** The node of a macro called on `target`, or `undefined` when name and arguments are not a macro's. */
  #memberMacro(at: number, target: Expr, name: string, args: readonly Expr[]): Expr | undefined {
    const [first, second, third, fourth] = args;
    const variable = (expr: Expr | undefined): string => {
      if (expr?.kind !== "ident")
        throw errorAt(this.#source, expr?.at ?? at, "argument must be a simple name");
      return expr.name;
    };
    const loop = (macro: LoopMacro, variables: readonly string[], step: Expr, filter?: Expr): Expr => {
      if (new Set(variables).size < variables.length)
        throw errorAt(this.#source, at, "variable names of a macro must differ");
      return this.#node({ kind: "loop", at, macro, range: target, variables, filter, step });
    };
    if (!first || !second) return undefined;
    switch (name) {
      case "all":
      case "exists":
      case "exists_one":
      case "existsOne": {
        const macro = name === "exists_one" ? "existsOne" : name;
        if (args.length === 2) return loop(macro, [variable(first)], second);
        return args.length === 3 && third && name !== "exists_one"
          ? loop(macro, [variable(first), variable(second)], third)
          : undefined;
      }
      case "map":
        if (args.length === 2) return loop("map", [variable(first)], second);
        return args.length === 3 && third ? loop("map", [variable(first)], third, second) : undefined;
      case "filter":
      case "sortBy":
        return args.length === 2 ? loop(name, [variable(first)], second) : undefined;
      case "transformList":
      case "transformMap":
      case "transformMapEntry":
        if (args.length === 3 && third) return loop(name, [variable(first), variable(second)], third);
        return args.length === 4 && third && fourth
          ? loop(name, [variable(first), variable(second)], fourth, third)
          : undefined;
      case "optMap":
      case "optFlatMap":
        if (args.length !== 2) return undefined;
        return this.#node({
          kind: "optionalMap",
          at,
          operand: target,
          variable: variable(first),
          step: second,
          flat: name === "optFlatMap",
        });
    }
    return undefined;
  }
}

/**
 * Parses an expression.
 *
 * @throws CelCompileError with the place of the first error.
 */
export function parse(source: string): Expr {
  return new Parser(source).whole();
}

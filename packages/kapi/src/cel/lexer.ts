/**
 * Splits CEL source into tokens. Linear, one pass, no regular expression over user text beyond one character.
 */
import { CelCompileError } from "./error.ts";

/** Longest expression accepted, in UTF-16 units (the public implementation's limit in code points). */
export const maxExpressionLength = 100_000;

/** One token. */
export type Token =
  | { readonly kind: "ident" | "punct" | "end"; readonly text: string; readonly at: number }
  | { readonly kind: "int" | "uint" | "double"; readonly text: string; readonly at: number }
  | { readonly kind: "string"; readonly text: string; readonly at: number }
  | { readonly kind: "bytes"; readonly text: string; readonly bytes: Uint8Array; readonly at: number };

/** A compile error at an offset of `source`. */
export function errorAt(source: string, at: number, message: string): CelCompileError {
  const before = source.slice(0, at);
  const line = before.split("\n").length;
  return new CelCompileError(message, line, at - (before.lastIndexOf("\n") + 1) + 1);
}

const punctuation = [
  "&&",
  "||",
  "==",
  "!=",
  "<=",
  ">=",
  "[",
  "]",
  "{",
  "}",
  "(",
  ")",
  ".",
  ",",
  ":",
  "?",
  "<",
  ">",
  "+",
  "-",
  "*",
  "/",
  "%",
  "!",
];

const isLetter = (c: string): boolean => (c >= "a" && c <= "z") || (c >= "A" && c <= "Z") || c === "_";
const isDigit = (c: string): boolean => c >= "0" && c <= "9";
const isHex = (c: string): boolean => isDigit(c) || (c >= "a" && c <= "f") || (c >= "A" && c <= "F");

const simpleEscapes: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
  "?": "?",
  '"': '"',
  "'": "'",
  "`": "`",
};

class Lexer {
  readonly #source: string;
  #at = 0;
  readonly #tokens: Token[] = [];

  constructor(source: string) {
    this.#source = source;
  }

  #fail(message: string, at = this.#at): never {
    throw errorAt(this.#source, at, `Syntax error: ${message}`);
  }

  #peek(ahead = 0): string {
    return this.#source[this.#at + ahead] ?? "";
  }

  run(): readonly Token[] {
    for (;;) {
      this.#skip();
      const at = this.#at;
      const c = this.#peek();
      if (c === "") {
        this.#tokens.push({ kind: "end", text: "", at });
        return this.#tokens;
      }
      if (isDigit(c) || (c === "." && isDigit(this.#peek(1)))) this.#number();
      else if (this.#stringStart() !== undefined) this.#string();
      else if (isLetter(c)) {
        while (isLetter(this.#peek()) || isDigit(this.#peek())) this.#at++;
        this.#tokens.push({ kind: "ident", text: this.#source.slice(at, this.#at), at });
      } else {
        const text = punctuation.find((p) => this.#source.startsWith(p, at));
        if (text === undefined) this.#fail(`token recognition error at: '${c}'`);
        this.#at += text.length;
        this.#tokens.push({ kind: "punct", text, at });
      }
    }
  }

  #skip(): void {
    for (;;) {
      const c = this.#peek();
      if (c !== "" && " \t\r\n\f".includes(c)) this.#at++;
      else if (c === "/" && this.#peek(1) === "/") {
        while (this.#peek() !== "" && this.#peek() !== "\n") this.#at++;
      } else return;
    }
  }

  #number(): void {
    const at = this.#at;
    let kind: "int" | "uint" | "double" = "int";
    if (this.#peek() === "0" && (this.#peek(1) === "x" || this.#peek(1) === "X")) {
      this.#at += 2;
      while (isHex(this.#peek())) this.#at++;
      if (this.#at === at + 2) this.#fail("invalid hexadecimal literal", at);
    } else {
      while (isDigit(this.#peek())) this.#at++;
      if (this.#peek() === "." && isDigit(this.#peek(1))) {
        kind = "double";
        this.#at++;
        while (isDigit(this.#peek())) this.#at++;
      }
      if (this.#peek() === "e" || this.#peek() === "E") {
        const sign = this.#peek(1) === "+" || this.#peek(1) === "-" ? 1 : 0;
        if (isDigit(this.#peek(1 + sign))) {
          kind = "double";
          this.#at += 1 + sign;
          while (isDigit(this.#peek())) this.#at++;
        }
      }
    }
    const text = this.#source.slice(at, this.#at);
    if (kind === "int" && (this.#peek() === "u" || this.#peek() === "U")) {
      kind = "uint";
      this.#at++;
    }
    this.#tokens.push({ kind, text, at });
  }

  /** Length of the prefix (`r`, `b`, `br`…) before a quote, or `undefined` when no string starts here. */
  #stringStart(): number | undefined {
    for (let i = 0; i <= 2; i++) {
      const c = this.#peek(i);
      if (c === '"' || c === "'") return i;
      if (!"rRbB".includes(c) || c === "") return undefined;
    }
    return undefined;
  }

  #string(): void {
    const at = this.#at;
    const prefixLength = this.#stringStart() ?? 0;
    const prefix = this.#source.slice(at, at + prefixLength).toLowerCase();
    const isRaw = prefix.includes("r");
    const isBytes = prefix.includes("b");
    this.#at += prefixLength;
    const quote = this.#peek();
    const isTriple = this.#peek(1) === quote && this.#peek(2) === quote;
    const end = isTriple ? quote.repeat(3) : quote;
    this.#at += end.length;
    const parts: string[] = [];
    const bytes: Buffer[] = [];
    const flush = (text: string): void => {
      if (isBytes) bytes.push(Buffer.from(text, "utf8"));
      else parts.push(text);
    };
    let run = this.#at;
    for (;;) {
      const c = this.#peek();
      if (c === "" || (!isTriple && (c === "\n" || c === "\r")))
        this.#fail("unterminated string literal", at);
      if (this.#source.startsWith(end, this.#at)) break;
      if (c === "\\" && !isRaw) {
        flush(this.#source.slice(run, this.#at));
        const escaped = this.#escape(isBytes);
        if (typeof escaped === "string") flush(escaped);
        else bytes.push(Buffer.from([escaped]));
        run = this.#at;
      } else this.#at++;
    }
    flush(this.#source.slice(run, this.#at));
    this.#at += end.length;
    if (isBytes) this.#tokens.push({ kind: "bytes", text: "", bytes: Buffer.concat(bytes), at });
    else this.#tokens.push({ kind: "string", text: parts.join(""), at });
  }

  /** One escape sequence: a text, or a byte where the literal is bytes. */
  #escape(isBytes: boolean): string | number {
    const at = this.#at;
    this.#at++;
    const c = this.#peek();
    this.#at++;
    const simple = simpleEscapes[c];
    if (simple !== undefined) return simple;
    if (c === "x" || c === "X") return this.#code(at, 2, 16, isBytes);
    if (c === "u" && !isBytes) return this.#code(at, 4, 16, false);
    if (c === "U" && !isBytes) return this.#code(at, 8, 16, false);
    if (c >= "0" && c <= "3") {
      this.#at--;
      return this.#code(at, 3, 8, isBytes);
    }
    return this.#fail("invalid escape sequence", at);
  }

  #code(at: number, digits: number, radix: 8 | 16, isByte: boolean): string | number {
    const text = this.#source.slice(this.#at, this.#at + digits);
    const isValid =
      text.length === digits && [...text].every((c) => (radix === 16 ? isHex(c) : c >= "0" && c <= "7"));
    const code = Number.parseInt(text, radix);
    if (!isValid || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
      this.#fail("invalid escape sequence", at);
    this.#at += digits;
    return isByte ? code : String.fromCodePoint(code);
  }
}

/** The tokens of `source`, ending with an `end` token. */
export function tokenize(source: string): readonly Token[] {
  if (source.length > maxExpressionLength) {
    throw errorAt(
      source,
      0,
      `expression code point size exceeds limit: size: ${source.length}, limit ${maxExpressionLength}`,
    );
  }
  return new Lexer(source).run();
}

/**
 * The Kubernetes regular expression functions: `find` and `findAll`, RE2 syntax.
 */
import { CelError } from "../error.ts";
import { compilePattern } from "../../schema/pattern.ts";
import { matchesRegex, member, type Overload, type OverloadOptions } from "../function.ts";
import { ArrayList } from "../value.ts";

function matcherOf(text: string, pattern: string) {
  const compiled = compilePattern(pattern);
  if ("error" in compiled) throw new CelError(`error parsing regexp: ${compiled.error}`);
  return compiled.compiled.matcher(text);
}

function find(text: string, pattern: string): string {
  const matcher = matcherOf(text, pattern);
  return matcher.find() ? (matcher.group() ?? "") : "";
}

function findAll(text: string, pattern: string, limit: bigint): ArrayList {
  const matcher = matcherOf(text, pattern);
  const found: string[] = [];
  while ((limit < 0n || BigInt(found.length) < limit) && matcher.find()) found.push(matcher.group() ?? "");
  return new ArrayList(found);
}

const first: OverloadOptions = { cost: matchesRegex, resultSize: ({ args: [text = 0] }) => text };
/** Every further match starts a new scan. */
const every: OverloadOptions = {
  ...first,
  charge: ([text = "", pattern = ""]) =>
    typeof text === "string" && typeof pattern === "string"
      ? 4 * matchesRegex({ args: [text.length, pattern.length], items: [] }) + text.length
      : 1,
};

/** All overloads of regular expressions. */
export const regexLibrary: readonly Overload[] = [
  member("find", ["string", "string"], "string", find, first),
  member(
    "findAll",
    ["string", "string"],
    "list(string)",
    (text, pattern) => findAll(text, pattern, -1n),
    every,
  ),
  member("findAll", ["string", "string", "int"], "list(string)", findAll, every),
];

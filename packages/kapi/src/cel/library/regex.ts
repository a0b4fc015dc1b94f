/**
 * Regular expressions: `matches` of the language, `find` and `findAll` of Kubernetes. RE2 syntax, never
 * JavaScript's engine.
 *
 * The work of a match is metered step by step. A pattern that is not known yet is charged for its compilation.
 */
import { compilePattern, isPatternCompiled, type Pattern } from "../../schema/pattern.ts";
import { CelError } from "../error.ts";
import { matchesRegex, metered, type Overload, type OverloadOptions } from "../function.ts";
import type { Meter } from "../meter.ts";
import { ArrayList } from "../value.ts";

/** Longest pattern that is made at run time. */
const maxDynamicPattern = 1000;

/** Units per state of a program that is compiled at run time. */
const compileCost = 400;

/** How much more than a metered step a step of the searching engine may cost. */
const searchFactor = 4;

function patternOf(source: string, meter: Meter): Pattern {
  const isNew = !isPatternCompiled(source);
  if (isNew && source.length > maxDynamicPattern) throw new CelError("pattern is too long");
  if (isNew) meter.spend(1000);
  const compiled = compilePattern(source);
  if ("error" in compiled) throw new CelError(`error parsing regexp: ${compiled.error}`);
  if (isNew) meter.spend(compiled.size * compileCost);
  return compiled;
}

function matches(meter: Meter, text: string, source: string): boolean {
  return patternOf(source, meter).meteredTest(text, (steps) => meter.spend(steps));
}

function find(meter: Meter, text: string, source: string): string {
  const pattern = patternOf(source, meter);
  if (!pattern.meteredTest(text, (steps) => meter.spend(steps * searchFactor))) return "";
  const matcher = pattern.engine().matcher(text);
  return matcher.find() ? (matcher.group() ?? "") : "";
}

function findAll(meter: Meter, text: string, source: string, limit: bigint): ArrayList {
  const pattern = patternOf(source, meter);
  // Each match starts the search anew, but all together read the text about once.
  pattern.meteredTest(text, (steps) => meter.spend(steps * searchFactor), true);
  const matcher = pattern.engine().matcher(text);
  const found: string[] = [];
  while ((limit < 0n || BigInt(found.length) < limit) && matcher.find()) {
    meter.spend(10);
    found.push(matcher.group() ?? "");
  }
  return new ArrayList(found);
}

const match: OverloadOptions = { cost: matchesRegex };
const search: OverloadOptions = { cost: matchesRegex, resultSize: ({ args: [text = 0] }) => text };

/** All overloads of regular expressions. */
export const regexLibrary: readonly Overload[] = [
  metered("member", "matches", ["string", "string"], "bool", matches, match),
  metered("global", "matches", ["string", "string"], "bool", matches, match),
  metered("member", "find", ["string", "string"], "string", find, search),
  metered(
    "member",
    "findAll",
    ["string", "string"],
    "list(string)",
    (meter, text, source) => findAll(meter, text, source, -1n),
    search,
  ),
  metered("member", "findAll", ["string", "string", "int"], "list(string)", findAll, search),
];

/**
 * Regular expressions a user supplies: always RE2 syntax and linear time (re2js), never JavaScript's RegExp.
 *
 * Compiled patterns are shared by their text, because large definitions repeat a few patterns hundreds of
 * times.
 */
import { LRUCache } from "lru-cache";
import { RE2JS, RE2JSException } from "re2js";
import { MeteredMatcher } from "./metered-match.ts";

/** Longest pattern text accepted. */
export const maxPatternLength = 16_384;

/** Program states of the compiled patterns that are kept. */
export const maxCachedStates = 300_000;

/**
 * Engines kept for texts where speed matters. Each may hold a table of up to 8 MiB (re2js), so this is what
 * bounds their memory, whoever writes the patterns.
 */
export const maxFastEngines = 16;

/** A compiled pattern. */
export interface Pattern {
  /** States of the compiled program: what one character may cost. */
  readonly size: number;
  /** True when the pattern occurs anywhere in the text; for long texts, bounded by text times size only. */
  test(text: string): boolean;
  /** Like `test`, telling `spend` of the steps made; with `whole` the scan goes on after a match. */
  meteredTest(text: string, spend: (steps: number) => void, whole?: boolean): boolean;
  /** The searching engine, for callers that need the matches themselves. */
  engine(): RE2JS;
}

const engines = new LRUCache<string, RE2JS>({ max: maxFastEngines });

const cache = new LRUCache<string, Pattern | { readonly error: string }>({
  maxSize: maxCachedStates,
  sizeCalculation: (pattern, source) => 32 + source.length + ("size" in pattern ? pattern.size : 0),
});

function compile(source: string): Pattern | { readonly error: string } {
  if (source.length > maxPatternLength)
    return { error: `pattern is longer than ${maxPatternLength} characters` };
  try {
    const compiled = RE2JS.compile(source);
    let matcher: MeteredMatcher | undefined;
    // The first engine serves for its program only, so it never builds a table.
    const engine = (): RE2JS => {
      let made = engines.get(source);
      if (!made) {
        made = RE2JS.compile(source);
        engines.set(source, made);
      }
      return made;
    };
    return {
      size: compiled.programSize(),
      engine,
      test: (text) => engine().test(text),
      meteredTest(text, spend, whole) {
        matcher ??= new MeteredMatcher(compiled.re2Input.prog);
        return matcher.test(text, spend, whole);
      },
    };
  } catch (error) {
    if (error instanceof RE2JSException) return { error: error.message };
    throw error;
  }
}

/** True when the pattern is compiled already. */
export function isPatternCompiled(source: string): boolean {
  return cache.has(source);
}

/** The compiled pattern, or the reason why the text is not a pattern. */
export function compilePattern(source: string): Pattern | { readonly error: string } {
  const known = cache.get(source);
  if (known) return known;
  const made = compile(source);
  cache.set(source, made);
  return made;
}

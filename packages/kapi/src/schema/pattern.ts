/**
 * Regular expressions a user supplies: always RE2 syntax and linear time (re2js), never JavaScript's RegExp.
 *
 * Compiled patterns are shared by their text, because large definitions repeat a few patterns hundreds of
 * times. The size of a subject is bounded by whoever stores it.
 */
import { LRUCache } from "lru-cache";
import { RE2JS, RE2JSException } from "re2js";

/** Longest pattern text accepted. */
export const maxPatternLength = 16_384;

/** Compiled patterns kept. */
export const maxCachedPatterns = 4096;

/** A compiled pattern. */
export interface Pattern {
  /** True when the pattern occurs anywhere in the text (unanchored). */
  test(text: string): boolean;
  /** The compiled expression, for callers that need matches and groups. */
  readonly compiled: RE2JS;
}

const cache = new LRUCache<string, Pattern | { readonly error: string }>({ max: maxCachedPatterns });

function compile(source: string): Pattern | { readonly error: string } {
  if (source.length > maxPatternLength)
    return { error: `pattern is longer than ${maxPatternLength} characters` };
  try {
    const compiled = RE2JS.compile(source);
    return { compiled, test: (text) => compiled.test(text) };
  } catch (error) {
    if (error instanceof RE2JSException) return { error: error.message };
    throw error;
  }
}

/** The compiled pattern, or the reason why the text is not a pattern. */
export function compilePattern(source: string): Pattern | { readonly error: string } {
  const known = cache.get(source);
  if (known) return known;
  const made = compile(source);
  cache.set(source, made);
  return made;
}

/**
 * What a validation found, with the bounds it works in: how many errors are kept, and how much work patterns
 * may cause.
 */
import type { FieldError } from "../resource.ts";
import type { Pattern } from "./pattern.ts";

/** Most errors reported for one object. */
export const maxFieldErrors = 500;

/** Most characters of their messages together: values and rules may be long. */
export const maxErrorText = 1_000_000;

/** Texts longer than this are worth the fast engine; shorter ones are matched step by step. */
export const fastTextLength = 256;

/**
 * Work (characters times program states) that the fast engine may do for one object unmetered: at worst, for
 * hostile patterns, some 30 ms; ordinary ones take a hundredth of that.
 */
export const freePatternWork = 300_000;

/** Metered steps all further matches of one object may take together: some 60 ms. */
export const meteredPatternSteps = 2_000_000;

/** Work of the patterns of one object. */
class PatternBudget {
  #free = freePatternWork;
  #steps = meteredPatternSteps;

  /** Whether the pattern matches, or `undefined` when there is no budget left to tell. */
  test(pattern: Pattern, text: string): boolean | undefined {
    const work = (text.length + 1) * pattern.size;
    if (text.length > fastTextLength && work <= this.#free) {
      this.#free -= work;
      return pattern.test(text);
    }
    try {
      return pattern.meteredTest(text, (steps) => {
        this.#steps -= steps;
        if (this.#steps < 0) throw new OutOfSteps();
      });
    } catch (error) {
      if (error instanceof OutOfSteps) return undefined;
      throw error;
    }
  }
}

class OutOfSteps extends Error {}

/** Errors of one object, and the budget they are found in. */
export class Findings {
  readonly errors: FieldError[] = [];
  readonly patterns: PatternBudget;
  #text = 0;

  constructor(patterns = new PatternBudget()) {
    this.patterns = patterns;
  }

  /** True when no more errors are kept. */
  get isFull(): boolean {
    return this.errors.length >= maxFieldErrors || this.#text > maxErrorText;
  }

  push(...errors: readonly FieldError[]): void {
    for (const error of errors) {
      if (this.isFull) return;
      this.#text += error.message.length;
      this.errors.push(error);
    }
  }

  /** Separate errors in the same budget: for alternatives, of which not all need to hold. */
  fork(): Findings {
    return new Findings(this.patterns);
  }
}

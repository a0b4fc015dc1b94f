/**
 * What goes wrong with CEL: an expression that is refused, an evaluation that fails, a budget that is spent.
 */

/** An expression that does not parse or check; positions are 1-based. */
export class CelCompileError extends Error {
  readonly line: number;
  readonly column: number;

  constructor(message: string, line: number, column: number) {
    super(message);
    this.name = "CelCompileError";
    this.line = line;
    this.column = column;
  }
}

/** An evaluation error of the language: `&&`, `||` and the quantifiers may absorb it. */
export class CelError extends Error {
  constructor(message: string) {
    // No stack is recorded: rules may fail thousands of times in one evaluation, and nobody reads it.
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
    super(message);
    Error.stackTraceLimit = limit;
    this.name = "CelError";
  }
}

/** The evaluation used up its budget. Nothing absorbs this. */
export class CelBudgetError extends Error {
  constructor() {
    super("operation cancelled: actual cost limit exceeded");
    this.name = "CelBudgetError";
  }
}

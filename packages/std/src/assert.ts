/**
 * Assertions: broken invariants of our own code, never of a caller's input.
 */

/** A broken invariant. The store stops on it; a controller quarantines the one object. */
export class InvariantError extends Error {
  constructor(message: string) {
    super(`invariant broken: ${message}`);
    this.name = "InvariantError";
  }
}

/** Throws {@link InvariantError} unless `condition` holds. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

/** Marks a branch the types exclude. */
export function unreachable(value: never): never {
  throw new InvariantError(`unreachable value ${JSON.stringify(value)}`);
}

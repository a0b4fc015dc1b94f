/**
 * The run-time budget of CEL: a number of cost units, spent node by node. One unit is at most some fifty
 * nanoseconds, so a budget is a bound on how long the event loop stands still.
 */
import { CelBudgetError } from "./error.ts";

/** Units charged for an error that `&&`, `||` or a quantifier absorbs: making one costs far more than a step. */
export const absorbedErrorCost = 30;

/** Counts down. */
export class Meter {
  #left: number;

  /** @param budget cost units. */
  constructor(budget: number) {
    this.#left = budget;
  }

  /** Units left. */
  get left(): number {
    return this.#left;
  }

  /** Takes `units`; throws CelBudgetError when they are not there. */
  spend(units: number): void {
    this.#left -= units;
    if (this.#left < 0) throw new CelBudgetError();
  }
}

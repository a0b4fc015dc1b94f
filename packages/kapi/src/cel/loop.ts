/**
 * Running the macros that loop over a list or map.
 */
import type { LoopMacro } from "./ast.ts";
import type { Frame, Run } from "./compiled.ts";
import { CelError } from "./error.ts";
import { sortByKeys } from "./library/lists.ts";
import { absorbedErrorCost } from "./meter.ts";
import { ArrayList, EntryMap, isList, isMap, type CelMap, type CelValue } from "./value.ts";

/** Units for putting one entry into a map. */
const mapEntryCost = 8;

/** A condition's value; anything but a boolean is an evaluation error. */
export function asBool(value: CelValue): boolean {
  if (typeof value !== "boolean") throw new CelError("no such overload");
  return value;
}

/** Calls `visit` with key and value of each entry; stops when it returns false. */
function each(range: CelValue, hasTwo: boolean, visit: (first: CelValue, second: CelValue) => boolean): void {
  if (isList(range)) {
    for (let i = 0; i < range.length; i++) {
      const item = range.at(i);
      if (!(hasTwo ? visit(BigInt(i), item) : visit(item, null))) return;
    }
  } else if (isMap(range)) {
    for (const key of range.keys()) {
      if (!visit(key, hasTwo ? (range.get(key) ?? null) : null)) return;
    }
  } else throw new CelError("no such overload");
}

/** Makes the closure of a loop: `slots` hold its variables. */
export function runLoop(
  macro: LoopMacro,
  range: Run,
  slots: readonly number[],
  step: Run,
  filter: Run | undefined,
): Run {
  const [firstSlot = 0, secondSlot] = slots;
  const hasTwo = secondSlot !== undefined;
  const loop = (frame: Frame, visit: (key: CelValue, value: CelValue) => boolean): void => {
    each(range(frame), hasTwo, (first, second) => {
      frame.meter.spend(2);
      frame.slots[firstSlot] = first;
      if (hasTwo) frame.slots[secondSlot] = second;
      return visit(first, second);
    });
  };
  const passes = (frame: Frame): boolean => filter === undefined || asBool(filter(frame));
  switch (macro) {
    case "all":
    case "exists":
      return runQuantifier(macro === "exists", loop, step);
    case "existsOne":
      return (frame) => {
        let count = 0;
        loop(frame, () => {
          if (asBool(step(frame))) count++;
          return true;
        });
        return count === 1;
      };
    case "filter":
      return (frame) => {
        const kept: CelValue[] = [];
        loop(frame, (first) => {
          if (asBool(step(frame))) kept.push(first);
          return true;
        });
        return new ArrayList(kept);
      };
    case "sortBy":
      return (frame) => {
        const items: CelValue[] = [];
        const keys: CelValue[] = [];
        loop(frame, (item) => {
          items.push(item);
          keys.push(step(frame));
          return true;
        });
        frame.meter.spend(items.length * Math.log2(items.length + 2) * 2);
        return sortByKeys(items, keys);
      };
    case "map":
    case "transformList":
      return (frame) => {
        const made: CelValue[] = [];
        loop(frame, () => {
          if (passes(frame)) made.push(step(frame));
          return true;
        });
        return new ArrayList(made);
      };
    case "transformMap":
      return (frame) => {
        const made: [CelValue, CelValue][] = [];
        loop(frame, (first) => {
          frame.meter.spend(mapEntryCost);
          if (passes(frame)) made.push([first, step(frame)]);
          return true;
        });
        return new EntryMap(made);
      };
    case "transformMapEntry":
      return (frame) => {
        const made: [CelValue, CelValue][] = [];
        loop(frame, () => {
          if (!passes(frame)) return true;
          const entries = entriesOf(step(frame));
          frame.meter.spend(mapEntryCost * (1 + entries.length));
          made.push(...entries);
          return true;
        });
        return new EntryMap(made);
      };
  }
}

function entriesOf(value: CelValue): [CelValue, CelValue][] {
  if (!isMap(value)) throw new CelError("no such overload");
  const map: CelMap = value;
  return map.keys().map((key) => [key, map.get(key) ?? null]);
}

/** `all` and `exists`: an error counts only when no item decides. */
function runQuantifier(
  decisive: boolean,
  loop: (frame: Frame, visit: () => boolean) => void,
  step: Run,
): Run {
  return (frame) => {
    let isDecided = false;
    let failure: CelError | undefined;
    loop(frame, () => {
      try {
        isDecided = asBool(step(frame)) === decisive;
      } catch (error) {
        if (!(error instanceof CelError)) throw error;
        frame.meter.spend(absorbedErrorCost);
        failure ??= error;
      }
      return !isDecided;
    });
    if (isDecided) return decisive;
    if (failure) throw failure;
    return !decisive;
  };
}

/**
 * Merges an applied configuration into a live value (structured-merge-diff "merge"): maps by entry,
 * associative lists by item, everything else replaced.
 *
 * Order of a merged list: items of the configuration in its order, live items not in it at their place
 * relative to what surrounds them. Merging the same configuration again changes nothing.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import type { TypeNode } from "../resource.ts";
import { own, put } from "../schema/json-value.ts";
import { itemStep } from "./fields-v1.ts";
import { entryType, itemType, shapeOf, type GranularList, type GranularMap } from "./typed-value.ts";

const isEmptyContainer = (value: unknown): boolean =>
  value === null ||
  (Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0);

/** The merged value; both sides present. Subtrees may be shared with either side. */
function mergeValues(type: TypeNode, live: unknown, config: unknown): unknown {
  if (live === null || live === undefined) return config;
  const liveShape = shapeOf(type, live);
  if (config === null) {
    // Nulling a container keeps what others put there: only owned fields are removed, by pruning.
    return liveShape.shape === "leaf" || isEmptyContainer(live) ? config : live;
  }
  const shape = shapeOf(type, config);
  if (shape.shape !== liveShape.shape || shape.shape === "leaf") return config;
  if (isEmptyContainer(live) && isEmptyContainer(config)) return config;
  if (shape.shape === "map" && isObject(live) && isObject(config)) return mergeMaps(shape, live, config);
  if (shape.shape === "list" && Array.isArray(live) && Array.isArray(config))
    return mergeLists(shape, live, config);
  return config;
}

function mergeMaps(shape: GranularMap, live: JsonObject, config: JsonObject): JsonObject {
  const out: JsonObject = {};
  for (const name of Object.keys(live)) {
    const applied = own(config, name);
    put(
      out,
      name,
      applied === undefined ? live[name] : mergeValues(entryType(shape, name), live[name], applied),
    );
  }
  for (const name of Object.keys(config)) if (!Object.hasOwn(live, name)) put(out, name, config[name]);
  return out;
}

/** A live item that occurs more than once: it is kept as it is until the configuration names it. */
const duplicated = Symbol("duplicated item");

function stepsOf(shape: GranularList, items: readonly unknown[]): readonly string[] {
  return items.map((item, i) => {
    const step = itemStep(shape.list, item);
    // An item without identity (only possible in stored objects) is nobody else's: it keeps its own place.
    return typeof step === "string" ? step : `i:${i}`;
  });
}

function mergeLists(
  shape: GranularList,
  live: readonly unknown[],
  config: readonly unknown[],
): readonly unknown[] {
  const type = itemType(shape);
  const liveSteps = stepsOf(shape, live);
  const configSteps = stepsOf(shape, config);
  const inConfig = new Set(configSteps);
  const liveItems = new Map<string, unknown>();
  liveSteps.forEach((step, i) => liveItems.set(step, liveItems.has(step) ? duplicated : live[i]));

  const mergeItem = (i: number): unknown => {
    const item = liveItems.get(configSteps[i] ?? "");
    return item === undefined || item === duplicated ? config[i] : mergeValues(type, item, config[i]);
  };
  const shared = configSteps.filter((step) => liveItems.has(step));
  let nextShared = 0;
  const merged = new Set<string>();
  const out: unknown[] = [];
  let l = 0;
  let r = 0;
  while (l < live.length || r < config.length) {
    const liveStep = liveSteps[l];
    const configStep = configSteps[r];
    if (liveStep !== undefined && configStep !== undefined) {
      if (liveStep === configStep) {
        merged.add(configStep);
        out.push(mergeItem(r));
        l++;
        r++;
        nextShared++;
        continue;
      }
      const expected = shared[nextShared];
      if (inConfig.has(liveStep) && expected !== undefined && expected !== liveStep) {
        l++;
        continue;
      }
    }
    if (liveStep !== undefined) {
      if (!inConfig.has(liveStep)) {
        out.push(live[l]);
        l++;
        continue;
      }
      if (merged.has(liveStep)) l++;
    }
    if (configStep !== undefined) {
      merged.add(configStep);
      out.push(mergeItem(r));
      if (shared[nextShared] === configStep) nextShared++;
      r++;
    }
  }
  return out;
}

/** `config` merged into `live`. */
export function mergeTyped(type: TypeNode, live: JsonObject, config: JsonObject): JsonObject {
  const merged = mergeValues(type, live, config);
  return isObject(merged) ? merged : config;
}

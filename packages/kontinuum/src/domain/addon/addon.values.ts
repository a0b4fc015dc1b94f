/**
 * The values of a chart: defaults with their computed fields filled in, and the user's values over them.
 *
 * A computed field is a map with the single key `$cel`; it may read `ctx`. Only our own defaults are
 * computed: what users write is data. All expressions of one chart share one budget, so that no values hold up
 * the event loop.
 */
import {
  celFromJson,
  CelMeter,
  celToJson,
  celTypes,
  compileCel,
  defaultCelBudget,
  type CelValue,
} from "@kontinuum/kapi";
import { CodedError, isObject, messageOf, type JsonObject } from "@kontinuum/std";
import { kubePrismPort } from "@kontinuum/talos";
import type { TalosCluster } from "../../kinds/index.ts";

/** Deepest nesting of values that is followed. */
const maxDepth = 64;

/** What expressions see. `controlPlaneReplicas` counts claimed and discovered control-plane machines. */
export function valuesContext(cluster: TalosCluster, controlPlaneReplicas: number): JsonObject {
  const { apiVersion, kind, metadata, spec, status } = cluster;
  return {
    taloscluster: {
      apiVersion,
      kind,
      metadata: { ...metadata },
      spec: { ...spec },
      status: { ...status, controlPlane: { replicas: controlPlaneReplicas } },
    },
    talos: { kubePrism: { port: kubePrismPort } },
  };
}

/** What the expressions of one chart see, and what they may spend together. */
interface Scope {
  readonly variables: { readonly ctx: CelValue };
  readonly meter: CelMeter;
}

/** Final values. Fails with `invalid_argument` when an expression does, or all together cost too much. */
export function chartValues(defaults: JsonObject, user: JsonObject, context: JsonObject): JsonObject {
  const scope: Scope = { variables: { ctx: celFromJson(context) }, meter: new CelMeter(defaultCelBudget) };
  const computed = compute(defaults, scope, 0);
  if (!isObject(computed)) throw new CodedError("invalid_argument", "the default values are not a map");
  return merge(computed, user);
}

function compute(value: unknown, scope: Scope, depth: number): unknown {
  if (depth > maxDepth) throw new CodedError("invalid_argument", `values are nested deeper than ${maxDepth}`);
  if (Array.isArray(value)) return value.map((item: unknown) => compute(item, scope, depth + 1));
  if (!isObject(value)) return value;
  const expression = value["$cel"];
  if (typeof expression === "string" && Object.keys(value).length === 1) return evaluated(expression, scope);
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, compute(item, scope, depth + 1)]),
  );
}

function evaluated(expression: string, { variables, meter }: Scope): unknown {
  try {
    return celToJson(compileCel(expression, { variables: { ctx: celTypes.dyn } }).evaluate(variables, meter));
  } catch (error) {
    throw new CodedError(
      "invalid_argument",
      `the expression ${JSON.stringify(expression)} fails: ${messageOf(error).split("\n")[0] ?? ""}`,
    );
  }
}

/** Maps merge, anything else of `over` replaces, null included. Neither is changed. */
export function merge(base: JsonObject, over: JsonObject): JsonObject {
  const result: JsonObject = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const below = Object.hasOwn(base, key) ? base[key] : undefined;
    const next = isObject(below) && isObject(value) ? merge(below, value) : value;
    Object.defineProperty(result, key, { value: next, enumerable: true, configurable: true, writable: true });
  }
  return result;
}

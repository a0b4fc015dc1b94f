/**
 * `x-kubernetes-validations` over a whole object: finds every place that has rules, gives each its value and
 * its old value, and reports what fails.
 *
 * Transition rules run only where an old value corresponds: by key in maps and map lists, never in other
 * lists. A rule that looks at unchanged values only is not run again (ratcheting), unless it is a transition
 * rule. One budget bounds a whole object; what does not fit is an error, never a hang.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import { CelBudgetError, Meter, type CelValue } from "../cel/index.ts";
import type { FieldError } from "../resource.ts";
import { celValue } from "./cel-value.ts";
import { sizedTypeOf } from "./cel-type.ts";
import { child, indexed, invalid } from "./field-error.ts";
import { maxErrorText, maxFieldErrors } from "./findings.ts";
import { equalJson } from "./json-value.ts";
import { checkRule, compileRule, overBudget, type CompiledRule, type RulePlace } from "./rule.ts";
import type { SchemaNode } from "./schema-node.ts";
import { correlateItems, correlateKey, uncorrelated } from "./validate.ts";

/**
 * Cost units all rules of one object may use together. Upstream allows more (10^7); here a unit is up to some
 * fifty nanoseconds of an event loop that everybody shares, so this bounds a validation by about 40 ms.
 */
export const objectBudget = 750_000;

/** Units for getting to a rule and its values, beside what the rule itself spends. */
const ruleOverhead = 10;

/** Makes a value when it is first asked for. */
function once(make: () => CelValue): () => CelValue {
  let made: CelValue | undefined;
  return () => (made ??= make());
}

/** The compiled rules of a schema. */
export interface RuleChecker {
  /** True when the schema has no rules at all. */
  readonly isEmpty: boolean;
  /** Errors of all rules that fail; `old` is the stored object of an update. */
  check(object: JsonObject, old: JsonObject | undefined): readonly FieldError[];
}

/** Rules at one node and below it. */
interface RuleNode {
  readonly schema: SchemaNode;
  readonly rules: readonly CompiledRule[];
  readonly properties: ReadonlyMap<string, RuleNode>;
  readonly additional: RuleNode | undefined;
  readonly items: RuleNode | undefined;
}

function compileNode(schema: SchemaNode, isRoot: boolean): RuleNode | undefined {
  const type = schema.rules.length > 0 ? sizedTypeOf(schema, isRoot) : undefined;
  const rules = type
    ? schema.rules.flatMap((source) => {
        const compiled = compileRule(source, type.type, schema);
        // A definition is refused when a rule does not compile; a stored one that slipped through is not run.
        return "rule" in compiled ? [compiled.rule] : [];
      })
    : [];
  const properties = new Map<string, RuleNode>();
  for (const [name, property] of schema.properties) {
    const node = compileNode(property, false);
    if (node) properties.set(name, node);
  }
  const additional = schema.additional && compileNode(schema.additional, false);
  const items = schema.items && compileNode(schema.items, false);
  if (rules.length === 0 && properties.size === 0 && !additional && !items) return undefined;
  return { schema, rules, properties, additional, items };
}

/** One pass over an object. */
class RulePass {
  readonly errors: FieldError[] = [];
  readonly #meter = new Meter(objectBudget);
  readonly #isUpdate: boolean;
  /** Characters of the messages so far. */
  #text = 0;

  constructor(isUpdate: boolean) {
    this.#isUpdate = isUpdate;
  }

  walk(node: RuleNode, value: unknown, old: unknown, path: string, isRoot: boolean): void {
    if (this.errors.length >= maxFieldErrors || this.#text > maxErrorText) return;
    if (value === null || value === undefined) return;
    this.#rules(node, value, old, path, isRoot);
    if (Array.isArray(value)) {
      if (!node.items) return;
      const oldItem = correlateItems(node.schema, old);
      for (let i = 0; i < value.length; i++)
        this.walk(node.items, value[i], oldItem(value[i]), indexed(path, i), false);
    } else if (isObject(value)) {
      for (const [name, property] of node.properties) {
        if (Object.hasOwn(value, name))
          this.walk(property, value[name], correlateKey(old, name), child(path, name), false);
      }
      if (!node.additional) return;
      for (const key of Object.keys(value))
        this.walk(node.additional, value[key], correlateKey(old, key), indexed(path, key), false);
    }
  }

  #rules(node: RuleNode, value: unknown, old: unknown, path: string, isRoot: boolean): void {
    if (node.rules.length === 0) return;
    const hasOld = this.#isUpdate && old !== uncorrelated && old !== null && old !== undefined;
    const isUnchanged = hasOld && equalJson(value, old);
    const self = once(() => celValue(value, node.schema, isRoot));
    const oldSelf = once(() => celValue(old, node.schema, isRoot));
    const typeName = node.schema.type || "object";
    for (const rule of node.rules) {
      if (rule.isTransition ? !hasOld && !rule.hasOptionalOld : isUnchanged) continue;
      this.#meter.spend(ruleOverhead);
      const place = { self, oldSelf: hasOld && rule.isTransition ? oldSelf : undefined, path, typeName };
      const error = this.#check(rule, place);
      if (!error) continue;
      this.errors.push(error);
      this.#text += error.message.length;
    }
  }

  #check(rule: CompiledRule, place: RulePlace): FieldError | undefined {
    try {
      return checkRule(rule, place, this.#meter);
    } catch (error) {
      // The rule that was running is named, too.
      if (error instanceof CelBudgetError) this.errors.push(overBudget(rule, place));
      throw error;
    }
  }
}

/** Compiles every rule below `schema`. */
export function compileRules(schema: SchemaNode): RuleChecker {
  const root = compileNode(schema, true);
  if (!root) return { isEmpty: true, check: () => [] };
  return {
    isEmpty: false,
    check(object, old) {
      const pass = new RulePass(old !== undefined);
      try {
        pass.walk(root, object, old ?? uncorrelated, "", true);
      } catch (error) {
        if (!(error instanceof CelBudgetError)) throw error;
        const text =
          "validation failed due to running out of cost budget, no further validation rules will be run";
        return [...pass.errors, invalid("<nil>", "object", text)];
      }
      return pass.errors;
    },
  };
}

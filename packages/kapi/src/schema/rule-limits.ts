/**
 * CEL rules of a definition: each must compile and stay within the cost limits of the Kubernetes API, for
 * itself times how often it may run, and together with the others of its version.
 */
import { sizedTypeOf, maxRequestSize } from "./cel-type.ts";
import type { FieldError } from "../resource.ts";
import { child, forbidden, indexed, invalid, notSupported, required } from "./field-error.ts";
import { compileRule, ruleReasons, type CompiledRule } from "./rule.ts";
import type { SchemaNode, ValidationRule } from "./schema-node.ts";

/** Greatest estimated cost of one rule, times how often its place may occur. */
export const ruleCostLimit = 10_000_000;

/** Greatest estimated cost of all rules of a version. */
export const totalCostLimit = 100_000_000;

/** Most characters of the rules and message expressions of one version. Large public definitions have 8,300. */
export const maxRuleText = 262_144;

const advice =
  "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)";

function costText(name: string, cost: number, limit: number): string {
  const factor = cost / limit;
  const shown =
    factor > 100 ? "more than 100x" : factor < 1.5 ? `${factor.toFixed(6)}x` : `${factor.toFixed(1)}x`;
  return `${name} exceeds budget by factor of ${shown} ${advice}`;
}

/** Where a rule stands. */
interface Place {
  readonly path: string;
  /** How often a schema lets the place occur; `undefined` when it sets no bound. */
  readonly cardinality: number | undefined;
  /** The innermost list whose items have no old value, if any. */
  readonly uncorrelated: string | undefined;
  readonly isRoot: boolean;
}

class LimitCheck {
  readonly errors: FieldError[] = [];
  readonly #costs: { readonly path: string; readonly cost: number }[] = [];
  #text = 0;

  walk(schema: SchemaNode, place: Place): void {
    if (schema.rules.length > 0) this.#rules(schema, place);
    const { path } = place;
    for (const [name, property] of schema.properties)
      this.walk(property, { ...place, path: indexed(child(path, "properties"), name), isRoot: false });
    const times = (max: number | undefined): number | undefined =>
      max === undefined || place.cardinality === undefined ? undefined : place.cardinality * max;
    if (schema.additional) {
      const at = child(path, "additionalProperties");
      this.walk(schema.additional, {
        ...place,
        path: at,
        cardinality: times(schema.maxProperties),
        isRoot: false,
      });
    }
    if (schema.items) {
      this.walk(schema.items, {
        path: child(path, "items"),
        cardinality: times(schema.maxItems),
        uncorrelated: schema.listType === "map" ? place.uncorrelated : path,
        isRoot: false,
      });
    }
  }

  #rules(schema: SchemaNode, place: Place): void {
    const list = child(place.path, "x-kubernetes-validations");
    const sized = sizedTypeOf(schema, place.isRoot);
    const seen = new Set<string>();
    schema.rules.forEach((source, i) => {
      const at = indexed(list, i);
      if (this.#text > maxRuleText) return;
      this.#text += source.rule.length + source.messageExpression.length;
      if (this.#text > maxRuleText) {
        this.errors.push(
          forbidden(at, `the rules of a version are too long: more than ${maxRuleText} characters`),
        );
        return;
      }
      const before = this.errors.length;
      this.#texts(source, at);
      if (seen.has(source.rule))
        this.errors.push({
          reason: "FieldValueDuplicate",
          field: at,
          message: `Duplicate value: ${JSON.stringify(source.rule)}`,
        });
      seen.add(source.rule);
      if (this.errors.length > before) return;
      if (!sized) {
        this.errors.push(invalid(at, source.rule, "rules need a schema with a known type"));
        return;
      }
      const compiled = compileRule(source, sized.type, schema);
      if ("problems" in compiled) {
        for (const { member, message } of compiled.problems)
          this.errors.push(invalid(child(at, member), source[member] ?? source.rule, message));
        return;
      }
      if (compiled.rule.isTransition && place.uncorrelated !== undefined && !compiled.rule.hasOptionalOld) {
        const text = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${place.uncorrelated}`;
        this.errors.push(invalid(child(at, "rule"), source.rule, text));
      }
      this.#price(compiled.rule, at, place.cardinality ?? Math.floor(maxRequestSize / (sized.minBytes + 1)));
    });
  }

  #texts(source: ValidationRule, at: string): void {
    const { rule, message, messageExpression, reason } = source;
    if (rule.trim() === "") this.errors.push(required(child(at, "rule"), "rule is not specified"));
    if (message !== "" && message.trim() === "")
      this.errors.push(invalid(child(at, "message"), message, "message must be non-empty if specified"));
    else if (/[\r\n]/.test(message.trim()))
      this.errors.push(invalid(child(at, "message"), message, "message must not contain line breaks"));
    if (/[\r\n]/.test(rule.trim()) && message.trim() === "" && messageExpression.trim() === "")
      this.errors.push(
        required(child(at, "message"), "message must be specified if rule contains line breaks"),
      );
    if (messageExpression !== "" && messageExpression.trim() === "") {
      this.errors.push(required(child(at, "messageExpression"), "must be non-empty if specified"));
    }
    if (reason !== "" && !ruleReasons.includes(reason))
      this.errors.push(notSupported(child(at, "reason"), reason, ruleReasons));
  }

  #price(rule: CompiledRule, at: string, cardinality: number): void {
    const cost = rule.program.cost * cardinality;
    const path = child(at, "rule");
    if (cost > ruleCostLimit)
      this.errors.push(forbidden(path, costText("estimated rule cost", cost, ruleCostLimit)));
    this.#costs.push({ path, cost });
    if (!rule.message) return;
    const messageCost = rule.message.cost * cardinality;
    const messagePath = child(at, "messageExpression");
    if (messageCost > ruleCostLimit)
      this.errors.push(
        forbidden(messagePath, costText("estimated messageExpression cost", messageCost, ruleCostLimit)),
      );
    this.#costs.push({ path: messagePath, cost: messageCost });
  }

  total(path: string): void {
    const total = this.#costs.reduce((sum, { cost }) => sum + cost, 0);
    if (total <= totalCostLimit) return;
    const worst = [...this.#costs].sort((a, b) => b.cost - a.cost).slice(0, 4);
    for (const { path: at } of worst) {
      this.errors.push(
        forbidden(
          at,
          "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema",
        ),
      );
    }
    const name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
    this.errors.push(forbidden(path, costText(name, total, totalCostLimit)));
  }
}

/** What is wrong with the rules below `schema`, the root of a resource at `path`. */
export function ruleErrors(schema: SchemaNode, path: string): readonly FieldError[] {
  const check = new LimitCheck();
  check.walk(schema, { path, cardinality: 1, uncorrelated: undefined, isRoot: true });
  check.total(path);
  return check.errors;
}

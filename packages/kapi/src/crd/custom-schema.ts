/**
 * Everything compiled from one version's schema, and the write rules of custom resources built on it: what
 * is pruned, defaulted, reset and checked, in the order the API server does it.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import { compileRules, type RuleChecker } from "../schema/cel-rules.ts";
import { compileDefaults, type Defaulter } from "../schema/default.ts";
import { compileEmbeddedCheck } from "../schema/embedded.ts";
import { invalid } from "../schema/field-error.ts";
import { cloneJson, equalJson, own } from "../schema/json-value.ts";
import { compileUniqueness, type UniquenessCheck } from "../schema/list-type.ts";
import { pruneResource } from "../schema/prune.ts";
import type { SchemaNode } from "../schema/schema-node.ts";
import { compileValidator, uncorrelated, validateValue, type Validator } from "../schema/validate.ts";
import type { FieldError, StrategyContext } from "../resource.ts";

const blockingReasons: ReadonlySet<FieldError["reason"]> = new Set([
  "FieldValueNotSupported",
  "FieldValueRequired",
  "FieldValueTooLong",
  "FieldValueTooMany",
  "FieldValueTypeInvalid",
]);

const rulesSkipped = invalid(
  "<nil>",
  null,
  "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
);

/** A version's schema at work. Compiled on first use, because a server may hold hundreds it never serves. */
export class CustomSchema {
  readonly schema: SchemaNode;
  readonly #hasStatus: boolean;
  #defaults: Defaulter | undefined;
  #validator: Validator | undefined;
  #structure: readonly UniquenessCheck[] | undefined;
  #rules: RuleChecker | undefined;

  constructor(schema: SchemaNode, hasStatus: boolean) {
    this.schema = schema;
    this.#hasStatus = hasStatus;
  }

  /** Removes unknown fields in place and returns their paths. */
  prune(object: JsonObject): readonly string[] {
    return pruneResource(object, this.schema);
  }

  applyDefaults(object: JsonObject): void {
    this.#defaults ??= compileDefaults(this.schema);
    this.#defaults(object);
  }

  prepareForCreate(object: JsonObject): void {
    if (this.#hasStatus) delete object["status"];
    if (isObject(object["metadata"])) object["metadata"]["generation"] = 1;
  }

  prepareForUpdate(object: JsonObject, old: JsonObject, context: StrategyContext): void {
    if (this.#hasStatus && context.subresource === "status") return keepAllButStatus(object, old);
    if (this.#hasStatus) copyMember(object, old, "status");
    const oldMeta = own(old, "metadata");
    const meta = object["metadata"];
    if (!isObject(meta)) return;
    const generation = isObject(oldMeta) ? Number(own(oldMeta, "generation") ?? 0) : 0;
    meta["generation"] = this.#isDesiredStateEqual(object, old) ? generation : generation + 1;
  }

  #isDesiredStateEqual(object: JsonObject, old: JsonObject): boolean {
    const counts = (key: string): boolean =>
      key !== "metadata" && key !== "apiVersion" && key !== "kind" && !(this.#hasStatus && key === "status");
    const keys = Object.keys(object).filter(counts);
    if (keys.length !== Object.keys(old).filter(counts).length) return false;
    return keys.every((key) => Object.hasOwn(old, key) && equalJson(object[key], old[key]));
  }

  validateCreate(object: JsonObject): readonly FieldError[] {
    return this.#validate(object, undefined);
  }

  validateUpdate(object: JsonObject, old: JsonObject): readonly FieldError[] {
    return this.#validate(object, old);
  }

  #validate(object: JsonObject, old: JsonObject | undefined): readonly FieldError[] {
    this.#validator ??= compileValidator(this.schema);
    this.#structure ??= [compileUniqueness(this.schema), compileEmbeddedCheck(this.schema)].filter(
      (check) => check !== undefined,
    );
    this.#rules ??= compileRules(this.schema);
    const errors = [...validateValue(this.#validator, object, "", old ?? uncorrelated)];
    for (const check of this.#structure) {
      const found: FieldError[] = [];
      check(object, "", found);
      if (found.length === 0) continue;
      const before: FieldError[] = [];
      // What was already wrong in the stored object does not stop an update.
      if (old) check(old, "", before);
      if (before.length === 0) errors.push(...found);
    }
    if (this.#rules.isEmpty) return errors;
    if (errors.some((error) => blockingReasons.has(error.reason))) errors.push(rulesSkipped);
    else errors.push(...this.#rules.check(object, old));
    return errors;
  }
}

function copyMember(object: JsonObject, old: JsonObject, key: string): void {
  if (Object.hasOwn(old, key)) object[key] = cloneJson(old[key]);
  else delete object[key];
}

/** A status write takes nothing but the status; managed fields were already computed for it. */
function keepAllButStatus(object: JsonObject, old: JsonObject): void {
  const status = own(object, "status");
  const meta = own(object, "metadata");
  const managedFields = isObject(meta) ? own(meta, "managedFields") : undefined;
  const resourceVersion = isObject(meta) ? own(meta, "resourceVersion") : undefined;
  for (const key of Object.keys(object)) if (key !== "apiVersion" && key !== "kind") delete object[key];
  for (const key of Object.keys(old)) {
    if (key !== "status" && key !== "apiVersion" && key !== "kind") object[key] = cloneJson(old[key]);
  }
  if (status !== undefined) object["status"] = status;
  const kept = object["metadata"];
  if (!isObject(kept)) return;
  if (managedFields !== undefined) kept["managedFields"] = managedFields;
  else delete kept["managedFields"];
  if (resourceVersion !== undefined) kept["resourceVersion"] = resourceVersion;
}

/**
 * One `x-kubernetes-validations` rule, compiled: the expression, the message expression, the field it
 * blames, and what each may cost.
 */
import {
  CelBudgetError,
  CelCompileError,
  CelError,
  CelOptional,
  compileCel,
  none,
  optionalOf,
  types,
  type CelProgram,
  type CelType,
  type CelValue,
  type Meter,
} from "../cel/index.ts";
import type { FieldError } from "../resource.ts";
import { parseFieldPath } from "./field-path.ts";
import type { SchemaNode, ValidationRule } from "./schema-node.ts";

/** Longest result of a message expression. */
export const maxMessageLength = 5 * 1024;

/** A rule that can run. */
export interface CompiledRule {
  readonly source: ValidationRule;
  readonly program: CelProgram;
  readonly message: CelProgram | undefined;
  /** Mentions `oldSelf`. */
  readonly isTransition: boolean;
  /** Runs on create too, with an optional `oldSelf`. */
  readonly hasOptionalOld: boolean;
  /** Appended to the path of the value. */
  readonly fieldPath: string;
}

/** What is wrong with a rule, and with which member of it. */
export interface RuleProblem {
  readonly member: "rule" | "message" | "messageExpression" | "fieldPath" | "optionalOldSelf" | "reason";
  readonly message: string;
}

const compileText = (error: CelCompileError, source: string): string => {
  const line = source.split("\n")[error.line - 1] ?? "";
  const pointer = `${".".repeat(Math.max(0, error.column - 1))}^`;
  return `compilation failed: ERROR: <input>:${error.line}:${error.column}: ${error.message}\n | ${line}\n | ${pointer}`;
};

function compileOrProblem(
  source: string,
  variables: Readonly<Record<string, CelType>>,
  result: CelType,
  member: RuleProblem["member"],
): CelProgram | RuleProblem {
  try {
    return compileCel(source, { variables, result });
  } catch (error) {
    if (!(error instanceof CelCompileError)) throw error;
    return { member, message: compileText(error, source) };
  }
}

/** Compiles a rule of `schema`, whose CEL type is `type`. */
export function compileRule(
  source: ValidationRule,
  type: CelType,
  schema: SchemaNode,
): { readonly rule: CompiledRule } | { readonly problems: readonly RuleProblem[] } {
  const hasOptionalOld = source.optionalOldSelf === true;
  const variables = { self: type, oldSelf: hasOptionalOld ? optionalOf(type) : type };
  const problems: RuleProblem[] = [];
  const program = compileOrProblem(source.rule, variables, types.bool, "rule");
  const message =
    source.messageExpression.trim() === ""
      ? undefined
      : compileOrProblem(source.messageExpression, variables, types.string, "messageExpression");
  for (const found of [program, message]) if (found && "member" in found) problems.push(found);
  const path = source.fieldPath === "" ? "" : parseFieldPath(source.fieldPath, schema);
  if (typeof path !== "string") problems.push({ member: "fieldPath", message: path.error });
  if ("member" in program || (message && "member" in message) || typeof path !== "string")
    return { problems };
  const isTransition = program.uses.has("oldSelf");
  if (hasOptionalOld && !isTransition)
    problems.push({ member: "optionalOldSelf", message: "may not be set if oldSelf is not used in rule" });
  if (problems.length > 0) return { problems };
  return { rule: { source, program, message, isTransition, hasOptionalOld, fieldPath: path } };
}

const reasons: ReadonlyMap<string, FieldError["reason"]> = new Map([
  ["FieldValueInvalid", "FieldValueInvalid"],
  ["FieldValueForbidden", "FieldValueForbidden"],
  ["FieldValueRequired", "FieldValueRequired"],
  ["FieldValueDuplicate", "FieldValueDuplicate"],
]);

/** Reasons a rule may give. */
export const ruleReasons: readonly string[] = [...reasons.keys()];

const nameOf = (rule: CompiledRule): string =>
  rule.source.message.trim() === "" ? rule.source.rule.trim() : rule.source.message.trim();

function failureMessage(
  rule: CompiledRule,
  variables: Readonly<Record<string, CelValue>>,
  meter: Meter,
): string {
  const fallback =
    rule.source.message.trim() === ""
      ? `failed rule: ${rule.source.rule.trim()}`
      : rule.source.message.trim();
  if (!rule.message) return fallback;
  try {
    const text = rule.message.evaluate(variables, meter);
    const isUsable = typeof text === "string" && text.trim() !== "" && !text.includes("\n");
    return isUsable && Buffer.byteLength(text) <= maxMessageLength ? text.trim() : fallback;
  } catch (error) {
    if (error instanceof CelError || error instanceof CelBudgetError) return fallback;
    throw error;
  }
}

/** A failure of `rule` as a field error. */
function failure(rule: CompiledRule, path: string, typeName: string, detail: string): FieldError {
  const reason = reasons.get(rule.source.reason) ?? "FieldValueInvalid";
  const field = path + rule.fieldPath;
  const trimmed = path === "" && field.startsWith(".") ? field.slice(1) : field;
  const quoted = JSON.stringify(typeName);
  const message = {
    FieldValueInvalid: `Invalid value: ${quoted}: ${detail}`,
    FieldValueForbidden: `Forbidden: ${detail}`,
    FieldValueRequired: `Required value: ${detail}`,
    FieldValueDuplicate: `Duplicate value: ${quoted}`,
  } as const satisfies Partial<Record<FieldError["reason"], string>>;
  const text = reason in message ? message[reason as keyof typeof message] : message.FieldValueInvalid;
  return { reason, field: trimmed === "" ? "<nil>" : trimmed, message: text };
}

function evaluationText(rule: CompiledRule, error: CelError): string {
  if (error.message === "no such overload") {
    return `${error.message}: call arguments did not match a supported operator, function or macro signature for rule: ${nameOf(rule)}`;
  }
  return `${error.message} evaluating rule: ${nameOf(rule)}`;
}

/** What `self` and `oldSelf` are at one place. */
export interface RulePlace {
  /** May fail with CelError: the value is not of the type its schema says. */
  readonly self: () => CelValue;
  /** `undefined` when no old value corresponds. */
  readonly oldSelf: (() => CelValue) | undefined;
  readonly path: string;
  readonly typeName: string;
}

/** The error of a rule that was stopped because it cost too much. */
export function overBudget(rule: CompiledRule, { path, typeName }: RulePlace): FieldError {
  return invalidAt(path, typeName, `call cost exceeds limit for rule: ${nameOf(rule)}`);
}

const invalidAt = (path: string, typeName: string, detail: string): FieldError => ({
  reason: "FieldValueInvalid",
  field: path || "<nil>",
  message: `Invalid value: ${JSON.stringify(typeName)}: ${detail}`,
});

/** Evaluates a rule at a place; `undefined` when it holds. Budget errors are thrown. */
export function checkRule(rule: CompiledRule, place: RulePlace, meter: Meter): FieldError | undefined {
  const { path, typeName } = place;
  let variables: Readonly<Record<string, CelValue>>;
  let result: CelValue;
  try {
    const old = place.oldSelf?.();
    const oldSelf = rule.hasOptionalOld ? (old === undefined ? none : new CelOptional(old)) : (old ?? null);
    variables = { self: place.self(), oldSelf };
    result = rule.program.evaluate(variables, meter);
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    return invalidAt(path, typeName, evaluationText(rule, error));
  }
  if (result === true) return undefined;
  return failure(rule, path, typeName, failureMessage(rule, variables, meter));
}

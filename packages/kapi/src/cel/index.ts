/**
 * A CEL engine (github.com/google/cel-spec) with the libraries of the Kubernetes environments: types are
 * checked and the worst case is priced before anything runs, and every evaluation has a budget.
 *
 * 64-bit integers are exact, regular expressions are RE2, nothing here can reach the host.
 */
import { LRUCache } from "lru-cache";
import { Compiler } from "./compile.ts";
import { CelCompileError, CelError } from "./error.ts";
import { FunctionTable, type Overload } from "./function.ts";
import { addressLibrary } from "./library/address.ts";
import { authorizerLibrary } from "./library/authorizer.ts";
import { conversionLibrary } from "./library/convert.ts";
import { formatLibrary } from "./library/format.ts";
import { listLibrary } from "./library/lists.ts";
import { optionalLibrary } from "./library/optional.ts";
import { quantityLibrary } from "./library/quantity.ts";
import { regexLibrary } from "./library/regex.ts";
import { semverLibrary } from "./library/semver.ts";
import { standardLibrary } from "./library/standard.ts";
import { stringLibrary } from "./library/strings.ts";
import { timeLibrary } from "./library/time.ts";
import { urlLibrary } from "./library/url.ts";
import { Meter } from "./meter.ts";
import { parse } from "./parser.ts";
import { printType, types, type CelType } from "./type.ts";
import type { CelValue } from "./value.ts";
import type { Expr } from "./ast.ts";

export { CelBudgetError, CelCompileError, CelError } from "./error.ts";
export { global as celFunction, type Overload as CelFunction } from "./function.ts";
export { fromJson, toJson } from "./json.ts";
export { FunctionTable } from "./function.ts";
export {
  authorizerType,
  celAuthorizer,
  celRequestResource,
  resourceCheckType,
  type AuthorizerAnswer,
  type AuthorizerQuestion,
} from "./library/authorizer.ts";
export { Meter } from "./meter.ts";
export { listOf, mapOf, optionalOf, types, type CelType, type ObjectField } from "./type.ts";
export {
  CelDuration,
  CelOptional,
  CelTimestamp,
  CelUint,
  EntryMap,
  none,
  type CelList,
  type CelMap,
  type CelValue,
} from "./value.ts";

const kubernetesOverloads: readonly Overload[] = [
  ...standardLibrary,
  ...conversionLibrary,
  ...timeLibrary,
  ...stringLibrary,
  ...listLibrary,
  ...optionalLibrary,
  ...regexLibrary,
  ...urlLibrary,
  ...addressLibrary,
  ...quantityLibrary,
  ...semverLibrary,
  ...formatLibrary,
];

/** Every function of the Kubernetes environments. */
export const kubernetesFunctions = new FunctionTable(kubernetesOverloads);

/** The functions of admission: those of Kubernetes, and asking who may do what. */
export const admissionFunctions = new FunctionTable([...kubernetesOverloads, ...authorizerLibrary]);

const numbers: ReadonlySet<string> = new Set(["int", "uint", "double"]);

/** Orders numbers of two different types, which is an option of the language that Kubernetes turned on. */
const isMixedOrder = ({ name, params: [a, b] }: Overload): boolean =>
  ["_<_", "_<=_", "_>_", "_>=_"].includes(name) &&
  a !== undefined &&
  b !== undefined &&
  a.kind !== b.kind &&
  numbers.has(a.kind) &&
  numbers.has(b.kind);

/** The functions of the bare language, for embedders whose expressions are not Kubernetes'. */
export const languageFunctions: readonly Overload[] = [
  ...standardLibrary.filter((overload) => !isMixedOrder(overload)),
  ...conversionLibrary,
  ...timeLibrary,
  ...regexLibrary.filter(({ name }) => name === "matches"),
];

/** Optional values, which are an extension of the language. */
export const optionalFunctions: readonly Overload[] = optionalLibrary;

/** Characters of the parsed expressions that are kept. */
export const maxCachedCharacters = 2_000_000;

const parsed = new LRUCache<string, Expr>({
  maxSize: maxCachedCharacters,
  sizeCalculation: (_expr, source) => 64 + source.length,
});

/** What an expression may mention, and what it must give. */
export interface CelDeclarations {
  readonly variables: Readonly<Record<string, CelType>>;
  /** The type the result must have; default any. */
  readonly result?: CelType;
  /** The functions there are; default those of the Kubernetes environments. */
  readonly functions?: FunctionTable;
}

/** A checked expression. */
export interface CelProgram {
  readonly source: string;
  readonly type: CelType;
  /** Estimated worst cost in the units of the Kubernetes API; `Infinity` is possible. */
  readonly cost: number;
  /** Declared variables the expression mentions. */
  readonly uses: ReadonlySet<string>;
  /**
   * Runs the expression.
   *
   * @throws CelError when it fails, CelBudgetError when the meter runs out.
   */
  evaluate(variables: Readonly<Record<string, CelValue>>, meter: Meter): CelValue;
}

/** Budget of one evaluation that has none of its own: about 25 ms at worst. */
export const defaultBudget = 500_000;

/**
 * Parses, checks and prices an expression.
 *
 * @throws CelCompileError with the place of the first error.
 */
export function compileCel(source: string, declarations: CelDeclarations): CelProgram {
  let expr = parsed.get(source);
  if (!expr) {
    expr = parse(source);
    parsed.set(source, expr);
  }
  const names = Object.keys(declarations.variables);
  const { variables, functions = kubernetesFunctions } = declarations;
  const compiler = new Compiler(source, functions, new Map(Object.entries(variables)));
  const compiled = compiler.compile(expr);
  const { result } = declarations;
  if (result && compiled.type.kind !== result.kind && compiled.type.kind !== "dyn")
    throw new CelCompileError(`must evaluate to ${printType(result)}`, 1, 1);
  const uses = new Set(names.filter((name) => compiler.used.has(name)));
  return {
    source,
    type: compiled.type,
    cost: compiled.cost,
    uses,
    evaluate(variables, meter) {
      const slots: CelValue[] = Array.from({ length: compiler.slotCount }, () => null);
      names.forEach((name, i) => (slots[i] = variables[name] ?? null));
      try {
        return compiled.run({ slots, meter });
      } catch (error) {
        // Every loop is bounded, so what is left is the engine's own refusal of an oversized string or array.
        if (error instanceof RangeError) throw new CelError("value is too large");
        throw error;
      }
    },
  };
}

/** Compiles and runs an expression over plain values with the default budget. */
export function evaluateOnce(source: string, variables: Readonly<Record<string, CelValue>>): CelValue {
  const declared = Object.fromEntries(Object.keys(variables).map((name) => [name, types.dyn]));
  return compileCel(source, { variables: declared }).evaluate(variables, new Meter(defaultBudget));
}

/**
 * What a kind does beyond its type: defaults, what the server sets, checks, warnings. Each family of kinds
 * keeps its rules in one file under `rules/`; a kind that is missing here has none.
 *
 * All functions get normalised objects, so a field that is there has the right type.
 */
import type { JsonObject } from "@kontinuum/std";
import type { FieldError, StrategyContext } from "../../resource.ts";

/** Rules of one kind; everything is optional. */
export interface KindRules {
  /** The server counts changes of the desired state in `metadata.generation`. */
  readonly generation?: boolean;
  /**
   * What a write of the status leaves of the old metadata: all of it that a user decides, or the labels. Default nothing:
   * as upstream, most kinds take labels, annotations, finalizers and owners from writers of the status, too.
   */
  readonly statusKeeps?: "metadata" | "labels";
  /** The kind's own checks cover what `structure.ts` would check. */
  readonly ownStructure?: boolean;
  defaults?(object: JsonObject): void;
  prepareCreate?(object: JsonObject, context: StrategyContext): void;
  /** For the main resource. */
  prepareUpdate?(object: JsonObject, old: JsonObject, context: StrategyContext): void;
  /** For a subresource other than `status` and `scale`: keep of the old object what it may not change. */
  prepareSubresource?(object: JsonObject, old: JsonObject, context: StrategyContext): void;
  /** Checks on create and on update of the main resource. */
  validate?(object: JsonObject, context: StrategyContext): FieldError[];
  /** Checks of the transition; `validate` has run before. */
  validateUpdate?(object: JsonObject, old: JsonObject, context: StrategyContext): FieldError[];
  warnings?(object: JsonObject): string[];
}

/** Rules by `apiVersion/kind`. */
export type RuleTable = Readonly<Record<string, KindRules>>;

/** No rules at all. */
export const noRules: KindRules = {};

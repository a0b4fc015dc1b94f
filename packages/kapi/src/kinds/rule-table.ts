/**
 * All rules of all families, in one table.
 */
import { noRules, type KindRules, type RuleTable } from "./rules.ts";

const table: RuleTable = {};

/** The rules of a kind. */
export const rulesOf = (apiVersion: string, kind: string): KindRules =>
  table[`${apiVersion}/${kind}`] ?? noRules;

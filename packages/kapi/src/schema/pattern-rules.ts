/**
 * The patterns of a definition: each must be RE2, and all together must stay small, because compiling them is
 * work the server does for whoever writes the definition.
 */
import type { FieldError } from "../resource.ts";
import { child, forbidden, indexed, invalid } from "./field-error.ts";
import { compilePattern } from "./pattern.ts";
import type { SchemaNode } from "./schema-node.ts";

/** Most program states of the different patterns of one version. Large public definitions have 1,600. */
export const maxPatternStates = 50_000;

class PatternCheck {
  readonly errors: FieldError[] = [];
  readonly #known = new Set<string>();
  #states = 0;

  walk(schema: SchemaNode, path: string): void {
    if (this.#states > maxPatternStates) return;
    if (schema.pattern !== "") this.#pattern(schema.pattern, child(path, "pattern"));
    for (const [name, property] of schema.properties)
      this.walk(property, indexed(child(path, "properties"), name));
    if (schema.additional) this.walk(schema.additional, child(path, "additionalProperties"));
    if (schema.items) this.walk(schema.items, child(path, "items"));
    if (schema.not) this.walk(schema.not, child(path, "not"));
    for (const [name, list] of [
      ["allOf", schema.allOf],
      ["anyOf", schema.anyOf],
      ["oneOf", schema.oneOf],
    ] as const)
      list.forEach((nested, i) => this.walk(nested, indexed(child(path, name), i)));
  }

  #pattern(source: string, path: string): void {
    if (this.#known.has(source)) return;
    this.#known.add(source);
    const compiled = compilePattern(source);
    if ("error" in compiled) {
      this.errors.push(
        invalid(path, source, `must be a valid regular expression, but isn't: ${compiled.error}`),
      );
      return;
    }
    this.#states += compiled.size;
    if (this.#states > maxPatternStates)
      this.errors.push(
        forbidden(path, `the patterns of a version are too large: more than ${maxPatternStates} states`),
      );
  }
}

/** What is wrong with the patterns below `schema`. */
export function patternErrors(schema: SchemaNode, path: string): readonly FieldError[] {
  const check = new PatternCheck();
  check.walk(schema, path);
  return check.errors;
}

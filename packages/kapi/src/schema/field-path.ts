/**
 * `fieldPath` of a validation rule: a relative path (`.foo.bar`, `.map['key']`, `['name']`) that must exist in
 * the schema. List indexes are not allowed.
 */
import type { SchemaNode } from "./schema-node.ts";

/** Longest path accepted. */
const maxFieldPathLength = 4096;

/**
 * Checks `text` against `schema` and returns it in the form error paths have, or what is wrong with it.
 */
export function parseFieldPath(text: string, schema: SchemaNode): string | { readonly error: string } {
  if (text.length > maxFieldPathLength) return { error: `must be at most ${maxFieldPathLength} characters` };
  if (text.trim() === "") return { error: "must not be empty" };
  let node: SchemaNode | undefined = schema;
  let at = 0;
  let path = "";
  while (at < text.length) {
    const step = /(?:\.([^.[\]'"\s]+)|\['((?:[^'\\]|\\.)*)'\]|\[(\d+)\])/y;
    step.lastIndex = at;
    const found = step.exec(text);
    if (!found)
      return {
        error: `fieldPath must be a valid path: unexpected ${JSON.stringify(text.slice(at, at + 16))}`,
      };
    if (found[3] !== undefined)
      return { error: "fieldPath must not refer to an item of a list by its index" };
    const name: string = found[1] ?? (found[2] ?? "").replace(/\\(.)/g, "$1");
    const property: SchemaNode | undefined = node.properties.get(name);
    const next: SchemaNode | undefined = property ?? node.additional;
    if (!next)
      return {
        error: `fieldPath must refer to a field of the schema: ${JSON.stringify(name)} does not exist`,
      };
    path += property ? `.${name}` : `[${name}]`;
    node = next;
    at = step.lastIndex;
  }
  return path;
}

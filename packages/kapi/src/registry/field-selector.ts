/**
 * Field selectors: equality on a short list of fields per kind (Kubernetes API, "Field selectors").
 */
import { badRequest } from "../status/status.ts";
import type { ResourceDefinition } from "../resource.ts";

/** A parsed selector. `field` reads one field of whatever is matched. */
export interface FieldSelector {
  readonly empty: boolean;
  matches(field: (path: string) => string): boolean;
}

interface Term {
  readonly path: string;
  readonly equal: boolean;
  readonly value: string;
}

const maxTerms = 100;
const everything: FieldSelector = { empty: true, matches: () => true };

/** Splits at unescaped commas. */
function splitTerms(text: string): string[] {
  const parts: string[] = [];
  let current = "";
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "\\") {
      current += text.slice(i, i + 2);
      i++;
    } else if (text[i] === ",") {
      parts.push(current);
      current = "";
    } else current += text[i];
  }
  parts.push(current);
  return parts;
}

function unescape(value: string): string {
  return value.replace(/\\(.?)/gs, (_match, char: string) => {
    if (char === "\\" || char === "," || char === "=") return char;
    throw badRequest(`invalid field selector: invalid escape sequence in value: ${JSON.stringify(value)}`);
  });
}

function parseTerm(part: string): Term {
  const match = /^([^=!\\]*?)(!=|==|=)(.*)$/s.exec(part);
  if (!match) throw badRequest(`invalid selector: '${part}'; can't understand '${part}'`);
  const [, path = "", operator = "", value = ""] = match;
  return { path, equal: operator !== "!=", value: unescape(value) };
}

/** Reads a selector for one resource. Fails with 400, also on fields the kind does not offer. */
export function parseFieldSelector(
  text: string | undefined,
  resource: Pick<ResourceDefinition, "origin" | "selectableFields" | "namespaced">,
): FieldSelector {
  if (text === undefined || text === "") return everything;
  const terms = splitTerms(text)
    .filter((part) => part !== "")
    .map(parseTerm);
  if (terms.length > maxTerms) throw badRequest(`a field selector holds more than ${maxTerms} terms`);
  if (terms.length === 0) return everything;
  for (const { path } of terms) {
    if (path === "metadata.name" || path === "metadata.namespace") continue;
    if (resource.selectableFields.includes(path)) continue;
    throw badRequest(
      resource.origin === "custom" || resource.selectableFields.length > 0
        ? `field label not supported: ${path}`
        : `${JSON.stringify(path)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
    );
  }
  return {
    empty: false,
    matches: (field) => terms.every(({ path, equal, value }) => (field(path) === value) === equal),
  };
}

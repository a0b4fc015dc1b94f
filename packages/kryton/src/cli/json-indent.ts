/**
 * JSON laid out with two spaces without being read and written again: escapes and numbers stay as they came.
 */

/** A string, something empty, punctuation, or anything else up to the next of those. */
const tokens = /"(?:[^"\\]|\\.)*"|\{\s*\}|\[\s*\]|[{}[\],:]|[^\s{}[\],:"]+/gs;

/** Lays out a valid JSON text; without a final newline. */
export function indentJson(text: string): string {
  const out: string[] = [];
  let depth = 0;
  const line = (): string => `\n${"  ".repeat(depth)}`;
  for (const [token] of text.matchAll(tokens)) {
    if (token === "{" || token === "[") {
      depth++;
      out.push(token, line());
    } else if (token === "}" || token === "]") {
      depth--;
      out.push(line(), token);
    } else if (token === ",") out.push(token, line());
    else if (token === ":") out.push(": ");
    else if (token.startsWith("{")) out.push("{}");
    else if (token.startsWith("[")) out.push("[]");
    else out.push(token);
  }
  return out.join("");
}

/**
 * Finds keys that appear twice in one object of a JSON text, which the engine's parser silently merges.
 *
 * The text is known to be valid JSON. A cheap count decides first whether a scan can find anything at all.
 */
import { measure } from "./json.ts";

/** Greatest number of duplicates reported for one text. */
export const maxDuplicates = 100;

/**
 * Paths of duplicate keys in `text`, e.g. `spec.replicas` or `spec.ports[1].name`; `value` is the same text
 * parsed. At most {@link maxDuplicates}.
 */
export function duplicateFields(text: string, value: unknown): readonly string[] {
  if (countKeys(text) === measure(value).keys) return [];
  return scan(text);
}

/** Quotes followed by a colon: every key, and now and then a string that only looks like one. */
function countKeys(text: string): number {
  let count = 0;
  for (let i = text.indexOf(":"); i !== -1; i = text.indexOf(":", i + 1)) {
    let j = i - 1;
    while (j >= 0 && isSpace(text.charCodeAt(j))) j--;
    if (text.charCodeAt(j) === 0x22) count++;
  }
  return count;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

interface Frame {
  readonly keys: Set<string> | undefined;
  /** Path up to and including this container. */
  readonly path: string;
  step: string;
  index: number;
}

function scan(text: string): readonly string[] {
  const found: string[] = [];
  const stack: Frame[] = [];
  let expectKey = false;
  for (let i = 0; i < text.length && found.length < maxDuplicates; i++) {
    const top = stack.at(-1);
    switch (text[i]) {
      case "{":
      case "[": {
        const isMap = text[i] === "{";
        stack.push({ keys: isMap ? new Set() : undefined, path: childPath(top), step: "", index: 0 });
        expectKey = isMap;
        break;
      }
      case "}":
      case "]":
        stack.pop();
        expectKey = false;
        break;
      case ",":
        if (top?.keys) expectKey = true;
        else if (top) top.index++;
        break;
      case '"': {
        const start = i;
        for (i++; text[i] !== '"'; i++) if (text[i] === "\\") i++;
        if (!expectKey || !top?.keys) break;
        expectKey = false;
        const key = String(JSON.parse(text.slice(start, i + 1)));
        top.step = key;
        if (top.keys.has(key)) found.push(childPath(top));
        top.keys.add(key);
        break;
      }
    }
  }
  return found;
}

function childPath(frame: Frame | undefined): string {
  if (!frame) return "";
  if (!frame.keys) return `${frame.path}[${frame.index}]`;
  return frame.path === "" ? frame.step : `${frame.path}.${frame.step}`;
}

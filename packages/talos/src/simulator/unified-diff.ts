/**
 * What changes between two texts, in the form of `diff -u`.
 *
 * Lines at both ends that are the same are set aside; between them the longest common subsequence is kept, or, when that
 * would take too long, everything is replaced.
 */

/** Unchanged lines shown around a change. */
const contextLines = 3;
/** Products of line counts that are compared line by line. */
const comparisonMax = 4_000_000;

type Edit = readonly [" " | "-" | "+", string];

/** Empty when the texts are the same. */
export function unifiedDiff(before: string, after: string): string {
  if (before === after) return "";
  const edits = editsOf(linesOf(before), linesOf(after));
  const shown = new Set<number>();
  edits.forEach(([kind], index) => {
    if (kind === " ") return;
    for (let i = index - contextLines; i <= index + contextLines; i++) shown.add(i);
  });
  let text = "--- a\n+++ b\n";
  let [oldLine, newLine] = [1, 1];
  for (let i = 0; i < edits.length;) {
    if (!shown.has(i)) {
      oldLine++;
      newLine++;
      i++;
      continue;
    }
    let end = i;
    while (end < edits.length && shown.has(end)) end++;
    const hunk = edits.slice(i, end);
    const oldCount = hunk.filter(([kind]) => kind !== "+").length;
    const newCount = hunk.filter(([kind]) => kind !== "-").length;
    text += `@@ -${oldCount === 0 ? oldLine - 1 : oldLine},${oldCount} +${newCount === 0 ? newLine - 1 : newLine},${newCount} @@\n`;
    text += hunk.map(([kind, line]) => `${kind}${line}\n`).join("");
    oldLine += oldCount;
    newLine += newCount;
    i = end;
  }
  return text;
}

function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

function editsOf(before: readonly string[], after: readonly string[]): Edit[] {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  const most = Math.min(before.length, after.length) - head;
  while (tail < most && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++;
  return [
    ...before.slice(0, head).map((line): Edit => [" ", line]),
    ...middle(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...before.slice(before.length - tail).map((line): Edit => [" ", line]),
  ];
}

function middle(before: readonly string[], after: readonly string[]): Edit[] {
  const [n, m] = [before.length, after.length];
  if (n * m > comparisonMax || n === 0 || m === 0) {
    return [...before.map((line): Edit => ["-", line]), ...after.map((line): Edit => ["+", line])];
  }
  // longest[i * (m + 1) + j]: length of the longest common subsequence of what is left from i and j on.
  const longest = new Uint32Array((n + 1) * (m + 1));
  const at = (i: number, j: number): number => longest[i * (m + 1) + j] ?? 0;
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      longest[i * (m + 1) + j] =
        before[i] === after[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const edits: Edit[] = [];
  let [i, j] = [0, 0];
  while (i < n || j < m) {
    if (i < n && j < m && before[i] === after[j]) {
      edits.push([" ", before[i] ?? ""]);
      i++;
      j++;
    } else if (i < n && (j === m || at(i + 1, j) >= at(i, j + 1))) edits.push(["-", before[i++] ?? ""]);
    else edits.push(["+", after[j++] ?? ""]);
  }
  return edits;
}

/**
 * Matching an RE2 program with its work counted, so that whoever supplies pattern and text cannot buy more
 * time than a budget allows.
 *
 * re2js is linear in text times program, but for hostile pairs that is seconds, and it cannot be interrupted.
 * This module simulates the program re2js compiled (Thompson's algorithm, as in RE2's NFA): one step is one
 * state visited at one position, some ten nanoseconds, and the caller is told of the steps as they are made.
 */

/** One instruction of a compiled program (re2js `Inst`). */
interface Instruction {
  readonly op: number;
  readonly out: number;
  readonly arg: number;
  matchRune(rune: number): boolean;
}

/** A compiled program (re2js `Prog`). */
export interface Program {
  readonly inst: readonly Instruction[];
  readonly start: number;
}

// Operations and empty-width conditions of re2js.
const alt = 1;
const altMatch = 2;
const capture = 3;
const emptyWidth = 4;
const match = 6;
const nop = 7;
const rune = 8;
const anyRune = 10;
const anyButNewline = 11;
const beginLine = 1;
const endLine = 2;
const beginText = 4;
const endText = 8;
const wordBoundary = 16;
const noWordBoundary = 32;

const newline = 10;

const isWord = (c: number): boolean =>
  (c >= 48 && c <= 57) || (c >= 65 && c <= 90) || c === 95 || (c >= 97 && c <= 122);

/** Which empty-width conditions hold between two characters; -1 is the edge of the text. */
function conditions(before: number, after: number): number {
  let held = 0;
  if (before < 0) held |= beginText | beginLine;
  else if (before === newline) held |= beginLine;
  if (after < 0) held |= endText | endLine;
  else if (after === newline) held |= endLine;
  return held | (isWord(before) === isWord(after) ? noWordBoundary : wordBoundary);
}

/** The states alive at one position, each once. */
class StateSet {
  readonly #marks: Uint32Array;
  readonly states: Uint32Array;
  #generation = 1;
  size = 0;

  constructor(count: number) {
    this.#marks = new Uint32Array(count);
    this.states = new Uint32Array(count);
  }

  clear(): void {
    this.size = 0;
    this.#generation++;
  }

  /** True when the state is new. */
  mark(pc: number): boolean {
    if (this.#marks[pc] === this.#generation) return false;
    this.#marks[pc] = this.#generation;
    return true;
  }
}

function startsAnchored({ inst, start }: Program): boolean {
  for (let pc = start; ;) {
    const instruction = inst[pc];
    if (!instruction) return false;
    if (instruction.op === emptyWidth) return (instruction.arg & beginText) !== 0;
    if (instruction.op !== capture && instruction.op !== nop) return false;
    pc = instruction.out;
  }
}

/** A program ready to run; holds its scratch space, so one text at a time. */
export class MeteredMatcher {
  readonly #program: Program;
  /** The pattern can match at the beginning only. */
  readonly #isAnchored: boolean;
  #current: StateSet;
  #next: StateSet;
  readonly #stack: number[] = [];

  constructor(program: Program) {
    this.#program = program;
    this.#isAnchored = startsAnchored(program);
    this.#current = new StateSet(program.inst.length);
    this.#next = new StateSet(program.inst.length);
  }

  /** Adds a state and all that follow without reading; true when one of them matches. */
  #add(set: StateSet, start: number, held: number): boolean {
    const { inst } = this.#program;
    const stack = this.#stack;
    stack.length = 0;
    stack.push(start);
    let isMatch = false;
    for (let pc = stack.pop(); pc !== undefined; pc = stack.pop()) {
      const instruction = inst[pc];
      if (!instruction || !set.mark(pc)) continue;
      const { op } = instruction;
      if (op === alt || op === altMatch) stack.push(instruction.arg, instruction.out);
      else if (op === capture || op === nop) stack.push(instruction.out);
      else if (op === emptyWidth) {
        if ((instruction.arg & ~held) === 0) stack.push(instruction.out);
      } else if (op === match) isMatch = true;
      else if (op >= rune) set.states[set.size++] = pc;
    }
    return isMatch;
  }

  /**
   * True when the pattern occurs anywhere in `text`. `spend` is called at least once per position with the
   * steps made; it stops the match by throwing. With `whole`, the scan goes on after a match.
   */
  test(text: string, spend: (steps: number) => void, whole = false): boolean {
    const { inst, start } = this.#program;
    this.#current.clear();
    let before = -1;
    let found = false;
    for (let at = 0; ;) {
      const code = at < text.length ? (text.codePointAt(at) ?? -1) : -1;
      if (at === 0 || !this.#isAnchored) {
        if (this.#add(this.#current, start, conditions(before, code))) {
          if (!whole) return true;
          found = true;
        }
      } else if (this.#current.size === 0) return found;
      spend(2 + this.#current.size);
      if (code < 0) return found;
      const width = code > 0xffff ? 2 : 1;
      const after = at + width < text.length ? (text.codePointAt(at + width) ?? -1) : -1;
      const held = conditions(code, after);
      this.#next.clear();
      let steps = 0;
      for (let i = 0; i < this.#current.size; i++) {
        const instruction = inst[this.#current.states[i] ?? 0];
        if (!instruction) continue;
        const { op } = instruction;
        const reads =
          op === anyRune || (op === anyButNewline ? code !== newline : instruction.matchRune(code));
        steps++;
        if (!reads) continue;
        steps += 2;
        if (this.#add(this.#next, instruction.out, held)) {
          if (!whole) return true;
          found = true;
        }
      }
      spend(steps + this.#next.size);
      const swap = this.#current;
      this.#current = this.#next;
      this.#next = swap;
      before = code;
      at += width;
    }
  }
}

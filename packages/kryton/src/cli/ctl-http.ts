/**
 * Calls of `krytonctl`: one request, its body printed as the contract says.
 */
import { messageOf, OutboundClient, systemClock, systemNetwork } from "@kontinuum/std";
import { ExitWith, type Io } from "./io.ts";
import { indentJson } from "./json-indent.ts";

/** How long a call may take, milliseconds. */
export const callLimitMs = 30_000;

/** Largest answer that is read, bytes. */
const maxAnswerBytes = 64 * 1024 * 1024;

/** The person at the shell says where to call, so no address is refused. */
export const anywhere = new OutboundClient(systemNetwork, systemClock, { allow: ["0.0.0.0/0", "::/0"] });

/** A finished call. */
export interface Answer {
  readonly status: number;
  readonly text: string;
  /** The parsed body, or `undefined` when it is not JSON. */
  readonly json: unknown;
}

/** Where to call and as whom. */
export class Target {
  readonly url: string;
  readonly project: string;
  readonly #token: string;
  readonly #io: Io;

  constructor(io: Io) {
    this.#io = io;
    this.url = (io.env["KRYTON_URL"] || "http://localhost:8080").replace(/\/$/, "");
    this.project = io.env["KRYTON_PROJECT"] || "default";
    this.#token = io.env["KRYTON_TOKEN"] || "";
  }

  /** The headers every call carries. */
  headers(more: Readonly<Record<string, string>> = {}): Record<string, string> {
    return {
      Accept: "application/json",
      ...(this.#token === "" ? {} : { Authorization: `Bearer ${this.#token}` }),
      ...more,
    };
  }

  /** Calls the API. A connection that fails ends the command with status 1 and one line. */
  async call(method: string, path: string, body?: unknown): Promise<Answer> {
    try {
      const answer = await anywhere.request({
        method,
        url: `${this.url}${path}`,
        headers: this.headers(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...(body === undefined ? {} : { body: Buffer.from(JSON.stringify(body), "utf8") }),
        timeoutMs: callLimitMs,
        maxBytes: maxAnswerBytes,
      });
      const text = answer.body.toString("utf8");
      return { status: answer.status, text, json: parse(text) };
    } catch (error) {
      this.#io.err(`krytonctl: ${messageOf(error)}\n`);
      throw new ExitWith(1);
    }
  }

  /** Prints an answer and ends the command with status 1 when it is a refusal. */
  finish(answer: Answer, print: (answer: Answer) => string = jsonText): void {
    const refused = answer.status >= 400;
    const text = refused ? jsonText(answer) : print(answer);
    if (text !== "") this.#io.out(text);
    if (refused) throw new ExitWith(1);
  }
}

/** The body as JSON with two spaces of indent, or as it came. */
export function jsonText({ text, json }: Answer): string {
  if (text.trim() === "") return "";
  return json === undefined ? text : `${indentJson(text)}\n`;
}

/** An answer made here, of parts of others. */
export function answerOf(status: number, json: unknown): Answer {
  return { status, json, text: JSON.stringify(json) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

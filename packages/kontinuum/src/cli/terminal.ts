/**
 * What a command needs of the world outside: output, input, environment, and the injected edges.
 */
import type { Edges } from "@kontinuum/std";

/** Where a command reads and writes. */
export interface Terminal {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown; readonly isTTY?: boolean };
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly edges: Edges;
  /** Aborts when the user asks the command to stop (Ctrl-C, SIGTERM). */
  readonly signal: AbortSignal;
}

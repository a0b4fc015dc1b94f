/**
 * The seam between whoever runs controllers (an API server, a program) and the controllers.
 */
import type { Edges } from "@kontinuum/std";
import type { Transport } from "./transport.ts";

/** What a controller is given when it starts. */
export interface ControllerContext {
  /** A connection to the API server with the controller's identity. */
  readonly transport: Transport;
  readonly edges: Edges;
  /** Aborts when the controller must stop. */
  readonly signal: AbortSignal;
}

/** Something that runs as long as the server. `run` resolves after `signal` aborted and the last write landed. */
export interface Controller {
  readonly name: string;
  run(context: ControllerContext): Promise<void>;
}

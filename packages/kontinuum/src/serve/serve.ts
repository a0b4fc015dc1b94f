/**
 * Running one process: store, API server, controllers, and their order of starting and stopping.
 */
import type { Edges } from "@kontinuum/std";
import type { Config } from "../config/config.ts";

/** What {@link serve} runs with. */
export interface ServeOptions {
  readonly edges: Edges;
  /** Aborts to stop. */
  readonly signal: AbortSignal;
}

/** Serves until `signal` aborts. */
export async function serve(config: Config, { edges, signal }: ServeOptions): Promise<void> {
  edges.log.info("starts", { address: config.values.KONTINUUM_SERVER_ADDR });
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}

/**
 * `@kontinuum/controller`: a controller runtime for Node. Knows no machines and no clusters.
 */
export * from "./object.ts";
export * from "./transport.ts";
export type { Controller } from "./manager.ts";

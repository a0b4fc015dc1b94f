/**
 * `@kontinuum/std`: the injected edges of everything else. Knows no domain.
 */
export * from "./assert.ts";
export * from "./clock.ts";
export * from "./edges.ts";
export * from "./errors.ts";
export * from "./folder.ts";
export * from "./ids.ts";
export * from "./json.ts";
export * from "./log.ts";
export * from "./net.ts";
export * from "./node-http.ts";
export * from "./outbound.ts";
export * from "./queue.ts";
export * from "./random.ts";
export * from "./unknown-variables.ts";

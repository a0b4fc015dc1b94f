/**
 * `@kontinuum/kapi`: an embeddable Kubernetes-style API server. Knows no machines and no clusters.
 */
export * from "./contract.ts";
export { parseTokenFile, staticTokens, type StaticToken } from "./auth/authenticators.ts";
export { createServer } from "./server.ts";

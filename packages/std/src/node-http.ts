/**
 * Node's HTTP modules, without what comes with importing them by name.
 *
 * `import http from "node:http"` reads every export of the module, and with `http.WebSocket` Node loads its whole
 * built-in fetch: 14 MB of memory at rest (Node 24). `process.getBuiltinModule` hands over the module as it is.
 */

/** `node:http`. */
export const http = process.getBuiltinModule("node:http");
/** `node:https`. */
export const https = process.getBuiltinModule("node:https");

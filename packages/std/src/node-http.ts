/**
 * Node's HTTP and TLS modules, without what comes with importing them by name.
 *
 * `import http from "node:http"` reads every export of the module, and with `http.WebSocket` Node loads its whole
 * built-in fetch: 14 MB of memory at rest (Node 24). TLS costs 6 MB more, and a plain server behind a proxy never speaks
 * it. `process.getBuiltinModule` hands a module over as it is, when it is asked for.
 */

import type https from "node:https";
import type tls from "node:tls";

/** `node:http`. */
export const http = process.getBuiltinModule("node:http");

/** `node:https`, loaded with the first call. */
export function loadHttps(): typeof https {
  return process.getBuiltinModule("node:https");
}

/** `node:tls`, loaded with the first call. */
export function loadTls(): typeof tls {
  return process.getBuiltinModule("node:tls");
}

/**
 * No authentication: everybody who claims nothing is the local demo user.
 *
 * Only sensible on loopback, and even there not everything that reaches the port is trusted: see
 * `http/loopback-guard.ts`. Who does present a token cannot be recognised, and is refused as everywhere else: a
 * caller with a key means another server, or one whose authentication somebody switched off by mistake.
 */
import type { Principal } from "../model/principal.ts";
import { presentsCredentials, type Authenticator } from "./authenticator.ts";

/** The caller when authentication is off. */
export const localDemo: Principal = { name: "local-demo", role: "admin", projects: ["*"] };

/** Lets in everybody without credentials. */
export const disabledAuthenticator: Authenticator = {
  mode: "disabled",
  authenticate: (request) => Promise.resolve(presentsCredentials(request) ? undefined : localDemo),
  stillValid: () => true,
};

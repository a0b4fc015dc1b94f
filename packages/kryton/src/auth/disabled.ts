/**
 * No authentication: everybody is the local demo user.
 *
 * Only sensible on loopback, and even there not everything that reaches the port is trusted: see
 * `http/loopback-guard.ts`.
 */
import type { Principal } from "../model/principal.ts";
import type { Authenticator } from "./authenticator.ts";

/** The caller when authentication is off. */
export const localDemo: Principal = { name: "local-demo", role: "admin", projects: ["*"] };

/** Lets everybody in. */
export const disabledAuthenticator: Authenticator = {
  mode: "disabled",
  authenticate: () => Promise.resolve(localDemo),
  stillValid: () => true,
};

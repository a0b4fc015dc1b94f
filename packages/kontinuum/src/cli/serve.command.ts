/**
 * `kontinuum serve`: the server, until it is told to stop.
 */
import { X509Certificate } from "node:crypto";
import { Command, type CommandUnknownOpts } from "@commander-js/extra-typings";
import { createLog, unknownVariables } from "@kontinuum/std";
import { parseConfig } from "../config/config.ts";
import { redactConnectionString } from "../config/redact.ts";
import { alsoKnown, readValues, variables, type Values } from "../config/variables.ts";
import type { Terminal } from "./terminal.ts";

/** The command. */
export function serveCommand(terminal: Terminal): CommandUnknownOpts {
  const command = new Command("serve")
    .description("Run the API server, the controllers and the console on one port.")
    .option("--addr <host:port>", "listen address (default :8080; loopback only while access is anonymous)")
    .option("--storage <address>", "storage connection string (default sqlite://kontinuum.db)")
    .addHelpText(
      "after",
      `
Flags win over the environment. Empty means default.

Environment:
${variables.map(({ name, default: fallback, about }) => `  ${name}${fallback === "" ? "" : ` (${fallback})`}\n      ${about}`).join("\n")}

Examples:
  KONTINUUM_INSECURE_ALLOW_ANONYMOUS=true kontinuum serve
  kontinuum serve --addr 127.0.0.1:9000 --storage postgres://kontinuum@db/kontinuum`,
    )
    .action(async (options) => {
      const flags: Partial<Values> = {
        ...(options.addr === undefined ? {} : { KONTINUUM_SERVER_ADDR: options.addr }),
        ...(options.storage === undefined ? {} : { KONTINUUM_SERVER_STORAGE: options.storage }),
      };
      const config = parseConfig(readValues(terminal.environment, flags));
      const log = createLog({ ...config.log, destination: terminal.stdout });
      const known = [...variables.map(({ name }) => name), ...alsoKnown];
      for (const warning of unknownVariables(terminal.environment, "KONTINUUM_", known)) log.warn(warning);
      const { serve } = await import("../serve/serve.ts");
      await serve(config, {
        edges: { ...terminal.edges, log },
        signal: terminal.signal,
        environment: terminal.environment,
        // Said whatever the log level: with port 0 nobody could know otherwise.
        onServing: ({ server, machineApi, authorities }) => {
          const store = redactConnectionString(config.values.KONTINUUM_SERVER_STORAGE);
          terminal.stderr.write(`kontinuum serves at ${server.url} (store ${store})\n`);
          // Somebody else than this machine will connect: they can compare what they are shown.
          if (authorities !== undefined && (config.oidc || config.grpc.endpoint !== ""))
            terminal.stderr.write(
              `TLS on the same port; the hub's own authority: ${fingerprints(authorities)}\n`,
            );
          if (machineApi !== undefined) terminal.stderr.write(`the machine API serves at ${machineApi}\n`);
        },
      });
    });
  return command;
}

/** SHA-256 of each certificate of a bundle, for people. */
function fingerprints(bundle: string): string {
  return bundle
    .split(/(?=-----BEGIN CERTIFICATE-----)/)
    .map((pem) => `SHA-256 ${new X509Certificate(pem).fingerprint256}`)
    .join(", ");
}

/**
 * A client for the commands that talk to a running server, with the operator's own credentials.
 */
import type { Client } from "@kontinuum/controller";
import { CodedError, isCoded } from "@kontinuum/std";
import type { KubeconfigChoice } from "./operator-kubeconfig.ts";
import type { Terminal } from "./terminal.ts";

/** Runs `work` with a client and closes its connections afterwards. */
export async function withClient<T>(
  terminal: Terminal,
  choice: KubeconfigChoice,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const { readOperatorKubeconfig } = await import("./operator-kubeconfig.ts");
  const { Client, kubeconfigTransport } = await import("@kontinuum/controller");
  const kubeconfig = await readOperatorKubeconfig(choice, terminal.environment);
  const transport = kubeconfigTransport(kubeconfig, { edges: terminal.edges });
  try {
    return await work(new Client(transport, { edges: terminal.edges, userAgent: "kontinuum-cli" }));
  } catch (error) {
    if (!isCoded(error, "unauthenticated")) throw error;
    throw new CodedError(
      "unauthenticated",
      `${error.message}; sign in again, or renew the credential in your kubeconfig`,
      { cause: error },
    );
  } finally {
    await transport.close();
  }
}

/**
 * Access to a cluster's own Kubernetes API, with the credentials this hub minted for itself.
 */
import { Client, kubeconfigTransport, readKubeconfig } from "@kontinuum/controller";
import type { Edges } from "@kontinuum/std";

/** A cluster's own API. */
export interface Downstream {
  readonly client: Client;
  /** For helm, which wants a file. */
  readonly kubeconfig: string;
}

/** Opens the API behind `kubeconfig`, runs `work` and closes the connections. */
export async function withDownstream<T>(
  kubeconfig: string,
  edges: Edges,
  work: (downstream: Downstream) => Promise<T>,
): Promise<T> {
  const transport = kubeconfigTransport(readKubeconfig(kubeconfig), { edges });
  try {
    const client = new Client(transport, { edges, userAgent: "kontinuum/hub", fieldManager: "kontinuum" });
    return await work({ client, kubeconfig });
  } finally {
    await transport.close();
  }
}

/**
 * Forgetting machines that left: a cluster keeps the Node of a machine that was reset, and with it the pods that
 * seem to run there, until somebody removes it.
 *
 * Every Node of the cluster is named after an Instance. One that is not ready and whose machine is no member any more
 * is removed; its pods are then made anew elsewhere. It is done before the health check, which expects the members
 * and nobody else.
 */
import { resource, shape, type Client, type KubeObject, type Resource } from "@kontinuum/controller";
import { isObject, stringAt, type JsonObject } from "@kontinuum/std";

interface Node extends KubeObject {
  status?: JsonObject;
}

const nodes: Resource<Node> = resource<Node>({
  group: "",
  version: "v1",
  kind: "Node",
  plural: "nodes",
  namespaced: false,
  shape: shape.object<Node>({ ...shape.kubeObject, status: shape.optional(shape.map(shape.unknown)) }),
});

/** Names of Nodes to remove, from all Nodes and the names of the members. Pure. */
export function leftNodes(all: readonly Node[], members: readonly string[]): readonly string[] {
  const staying = new Set(members);
  return all
    .filter((node) => !staying.has(node.metadata.name) && !isReady(node))
    .map(({ metadata }) => metadata.name);
}

/** Removes them. Returns their names. */
export async function removeLeftNodes(
  client: Client,
  members: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { items } = await client.list(nodes, { signal });
  const names = leftNodes(items, members);
  for (const name of names) await client.deleteIfExists(nodes, { name }, { signal });
  return names;
}

function isReady({ status }: Node): boolean {
  const conditions = status?.["conditions"];
  if (!Array.isArray(conditions)) return false;
  return conditions
    .filter(isObject)
    .some((condition) => stringAt(condition, "type") === "Ready" && stringAt(condition, "status") === "True");
}

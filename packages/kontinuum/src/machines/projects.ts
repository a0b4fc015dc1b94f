/**
 * Projects of the machine API are namespaces with the label `kryton.io/project`: whoever may make a namespace makes a
 * project, and both APIs speak of the same tenants. `KRYTON_PROJECTS` names those that exist from the start.
 */
import { Client, Informer, namespaces, type Transport } from "@kontinuum/controller";
import { isCoded, type Edges } from "@kontinuum/std";

/** The label; its value says nothing. */
export const projectLabel = "kryton.io/project";

/** The projects of a hub, kept up to date. */
export interface Projects {
  /** Names, sorted. */
  list(): readonly string[];
  close(): Promise<void>;
}

/** Makes the projects that are named, and follows all. Resolves when the present ones are known. */
export async function openProjects(
  transport: Transport,
  named: readonly string[],
  edges: Edges,
): Promise<Projects> {
  const client = new Client(transport, { edges, userAgent: "kontinuum/projects" });
  for (const name of named) await ensureProject(client, name);
  const labels = { matchExpressions: [{ key: projectLabel, operator: "Exists" as const }] };
  const informer = new Informer(client, namespaces, { edges, labels });
  const stop = new AbortController();
  const running = informer.run(stop.signal);
  await Promise.race([informer.synced(), running]);
  return {
    list: () =>
      [...informer.peekAll()]
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
        .map(({ metadata }) => metadata.name)
        .sort(),
    async close() {
      stop.abort();
      await running;
    },
  };
}

async function ensureProject(client: Client, name: string): Promise<void> {
  const labels = { [projectLabel]: "" };
  try {
    await client.create(namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } });
  } catch (error) {
    if (!isCoded(error, "already_exists")) throw error;
    const present = await client.get(namespaces, { name });
    if (present.metadata.labels?.[projectLabel] !== undefined) return;
    await client.patch(namespaces, { name }, { type: "merge", patch: { metadata: { labels } } });
  }
}

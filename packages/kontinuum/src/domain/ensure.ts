/**
 * Making sure that an object is there, whoever else is doing the same at the same time.
 */
import { namespaces, type Client, type KubeObject, type Resource } from "@kontinuum/controller";
import { isCoded } from "@kontinuum/std";

/** Creates a namespace unless it exists. */
export async function ensureNamespace(client: Client, name: string): Promise<void> {
  const metadata = { name };
  await ensureExists(client, namespaces, { apiVersion: "v1", kind: "Namespace", metadata });
}

/** The object as it stands: found, or created as given. An existing one is left as it is. */
export async function ensureExists<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  object: T,
): Promise<T> {
  const { namespace, name } = object.metadata;
  const present = await client.find(resource, { namespace, name });
  if (present) return present;
  try {
    return await client.create(resource, object);
  } catch (error) {
    if (!isCoded(error, "already_exists")) throw error;
    return client.get(resource, { namespace, name });
  }
}

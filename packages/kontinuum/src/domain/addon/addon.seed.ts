/**
 * Making the addons every cluster gets. Create-only: what a user changed or switched off stays that way, and
 * chart and values stay unset, so that a newer program brings its newer defaults.
 */
import { setControllerReference, type CachedClient } from "@kontinuum/controller";
import { isCoded } from "@kontinuum/std";
import { addonKind, talosClusterKind, type Addon, type TalosCluster } from "../../kinds/index.ts";
import { builtinAddons, type BuiltinAddon } from "./builtin-addons.ts";

/** Creates the built-in addons of `cluster` that are missing. */
export async function seedAddons(client: CachedClient, cluster: TalosCluster): Promise<void> {
  for (const builtin of builtinAddons) {
    const addon = addonFor(cluster, builtin);
    const { namespace, name } = addon.metadata;
    if (await client.find(addonKind.resource, { namespace, name })) continue;
    try {
      await client.create(addonKind.resource, addon);
    } catch (error) {
      if (!isCoded(error, "already_exists")) throw error;
    }
  }
}

function addonFor(cluster: TalosCluster, builtin: BuiltinAddon): Addon {
  const { namespace, name, labels } = cluster.metadata;
  const addon: Addon = {
    apiVersion: "kontinuum.sh/v1alpha2",
    kind: "Addon",
    metadata: {
      ...(namespace === undefined ? {} : { namespace }),
      name: `${name}-${builtin.release}`,
      ...(labels ? { labels: { ...labels } } : {}),
    },
    spec: {
      talosClusterRef: { name },
      releaseName: builtin.release,
      enabled: true,
      lifecycle: { priority: builtin.priority, provisioning: { method: builtin.method } },
      namespace: { name: builtin.namespace },
    },
  };
  setControllerReference(addon, cluster, talosClusterKind.resource);
  return addon;
}

/**
 * Administrators' rights as ordinary RBAC objects: one ClusterRole, one binding for each configured group.
 *
 * Bindings without our label are never touched. One that fails does not hold up the others.
 */
import { createHash } from "node:crypto";
import {
  defineController,
  resource,
  shape,
  type CachedClient,
  type DefinedController,
  type KubeObject,
} from "@kontinuum/controller";
import { isCoded, messageOf, type JsonObject, type Log } from "@kontinuum/std";
import { annotations, labels } from "../../kinds/index.ts";
import type { DomainContext } from "../domain-context.ts";
import { globalKey } from "../zone-lease/zone-leases.ts";

const roleName = "kontinuum-admin";
const managedBy = { [labels.managedBy]: "admin-group-controller" };
const group = "rbac.authorization.k8s.io";
const apiVersion = `${group}/v1`;

interface ClusterRole extends KubeObject {
  rules?: JsonObject[];
}

interface ClusterRoleBinding extends KubeObject {
  roleRef: JsonObject;
  subjects?: JsonObject[];
}

const clusterRoles = resource<ClusterRole>({
  group,
  version: "v1",
  kind: "ClusterRole",
  plural: "clusterroles",
  namespaced: false,
  shape: shape.object<ClusterRole>({
    ...shape.kubeObject,
    rules: shape.optional(shape.list(shape.map(shape.unknown))),
  }),
});

const clusterRoleBindings = resource<ClusterRoleBinding>({
  group,
  version: "v1",
  kind: "ClusterRoleBinding",
  plural: "clusterrolebindings",
  namespaced: false,
  shape: shape.object<ClusterRoleBinding>({
    ...shape.kubeObject,
    roleRef: shape.map(shape.unknown),
    subjects: shape.optional(shape.list(shape.map(shape.unknown))),
  }),
});

/** The controller `admin-rbac`, for the groups of the configuration. */
export function adminRbacController({ config, timings, leases }: DomainContext): DefinedController {
  const groups = config.oidc?.adminGroups ?? [];
  return defineController({
    name: "admin-rbac",
    watches: [],
    initialKeys: ["admin-groups"],
    async reconcile(_key, { client, log }) {
      if (await leases.tryAcquire(client, globalKey)) await reconcileBindings(client, groups, log);
      return { requeueAfterMs: timings.adminRbacMs };
    },
  });
}

/** Name of the binding of a group. */
export const bindingName = (name: string): string =>
  `${roleName}-${createHash("sha256").update(name).digest("hex").slice(0, 12)}`;

async function reconcileBindings(client: CachedClient, groups: readonly string[], log: Log): Promise<void> {
  const attempt = async (what: string, work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      if (!isCoded(error, "already_exists"))
        log.warn("admin rights: a step failed", { what, reason: messageOf(error) });
    }
  };
  const { items } = await client.list(clusterRoleBindings, { labels: { matchLabels: managedBy } });
  if (!(await client.find(clusterRoles, { name: roleName }))) {
    await attempt("role", () => client.create(clusterRoles, adminRole));
  }
  const present = new Map(
    items.map((binding) => [binding.metadata.annotations?.[annotations.adminGroup] ?? "", binding]),
  );
  for (const name of groups.filter((one) => !present.has(one))) {
    await attempt(name, () => client.create(clusterRoleBindings, bindingOf(name)));
  }
  for (const [name, binding] of present) {
    if (groups.includes(name)) continue;
    await attempt(name, () => client.deleteIfExists(clusterRoleBindings, { name: binding.metadata.name }));
  }
}

const adminRole: ClusterRole = {
  apiVersion,
  kind: "ClusterRole",
  metadata: { name: roleName, labels: { ...managedBy } },
  rules: [
    { apiGroups: ["*"], resources: ["*"], verbs: ["*"] },
    { nonResourceURLs: ["*"], verbs: ["*"] },
  ],
};

function bindingOf(name: string): ClusterRoleBinding {
  return {
    apiVersion,
    kind: "ClusterRoleBinding",
    metadata: {
      name: bindingName(name),
      labels: { ...managedBy },
      annotations: { [annotations.adminGroup]: name },
    },
    roleRef: { apiGroup: group, kind: "ClusterRole", name: roleName },
    subjects: [{ apiGroup: group, kind: "Group", name }],
  };
}

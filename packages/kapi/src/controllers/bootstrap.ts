/**
 * Objects every cluster has: made at start; roles are brought up to date, everything else is left as it is found.
 */
import type { Transport } from "@kontinuum/controller";
import { at, isObject, type JsonObject } from "@kontinuum/std";
import { bootstrapBindings, bootstrapRoles, type BootstrapRole } from "../auth/bootstrap-roles.ts";
import type { ResourceSet } from "../registry/resource-set.ts";
import { uncovered, rulesOf } from "../auth/rbac-rules.ts";
import { call, failedWith } from "./call.ts";

const namespaces = ["default", "kube-system", "kube-public", "kube-node-lease"];
const rbac = "/apis/rbac.authorization.k8s.io/v1";
const bootstrapLabels = { "kubernetes.io/bootstrapping": "rbac-defaults" };
const autoUpdate = "rbac.authorization.kubernetes.io/autoupdate";

/** Ensures the standard namespaces and `systemNamespace`. */
export async function bootstrapNamespaces(
  transport: Transport,
  resources: ResourceSet,
  systemNamespace: string,
): Promise<void> {
  if (!resources.get("", "v1", "namespaces")) return;
  for (const name of [...namespaces, systemNamespace]) {
    await ensure(transport, "/api/v1/namespaces", {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name },
    });
  }
}

/** Creates an object unless its name is taken; says whether it made it. */
export async function ensure(transport: Transport, path: string, object: unknown): Promise<boolean> {
  try {
    await call(transport, "POST", path, object);
    return true;
  } catch (error) {
    if (!failedWith(error, 409)) throw error;
    return false;
  }
}

/** Ensures the standard roles and bindings. */
export async function bootstrapRbac(transport: Transport, resources: ResourceSet): Promise<void> {
  const served = (plural: string): boolean =>
    resources.get("rbac.authorization.k8s.io", "v1", plural) !== undefined;
  if (served("clusterroles")) for (const role of bootstrapRoles) await ensureRole(transport, role);
  if (served("clusterrolebindings")) {
    for (const { name, role, groups } of bootstrapBindings) {
      await ensure(transport, `${rbac}/clusterrolebindings`, {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "ClusterRoleBinding",
        metadata: { name, labels: bootstrapLabels, annotations: { [autoUpdate]: "true" } },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
        subjects: groups.map((group) => ({
          kind: "Group",
          name: group,
          apiGroup: "rbac.authorization.k8s.io",
        })),
      });
    }
  }
  if (served("roles") && resources.get("", "v1", "namespaces")) {
    await ensure(transport, `${rbac}/namespaces/kube-system/roles`, {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "Role",
      metadata: {
        name: "extension-apiserver-authentication-reader",
        labels: bootstrapLabels,
        annotations: { [autoUpdate]: "true" },
      },
      rules: [
        {
          apiGroups: [""],
          resources: ["configmaps"],
          resourceNames: ["extension-apiserver-authentication"],
          verbs: ["get", "list", "watch"],
        },
      ],
    });
  }
}

function roleObject({ name, labels, rules, aggregates }: BootstrapRole): JsonObject {
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name, labels: { ...bootstrapLabels, ...labels }, annotations: { [autoUpdate]: "true" } },
    ...(aggregates === undefined
      ? { rules: rules ?? [] }
      : { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [aggregates]: "true" } }] } }),
  };
}

/** Creates a role, or adds the rules it lacks unless its owner said not to. */
async function ensureRole(transport: Transport, role: BootstrapRole): Promise<void> {
  const wanted = roleObject(role);
  if (await ensure(transport, `${rbac}/clusterroles`, wanted)) return;
  if (role.aggregates !== undefined) return;
  const path = `${rbac}/clusterroles/${encodeURIComponent(role.name)}`;
  const present = await call(transport, "GET", path);
  if (at(present, "metadata", "annotations", autoUpdate) === "false") return;
  const missing = uncovered(rulesOf(present), rulesOf(wanted));
  if (missing?.length === 0) return;
  const rules = Array.isArray(present["rules"]) ? present["rules"].filter(isObject) : [];
  await call(transport, "PUT", path, { ...present, rules: [...rules, ...(role.rules ?? [])] });
}

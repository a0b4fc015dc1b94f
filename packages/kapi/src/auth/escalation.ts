/**
 * Nobody grants what they do not have: the check on writes of roles and bindings.
 */
import { at, isObject, stringAt, type JsonObject } from "@kontinuum/std";
import type { Authorizer, UserInfo } from "../contract.ts";
import { equalJson } from "../json/json.ts";
import type { WriteGuard } from "../registry/deps.ts";
import { metaText } from "../registry/metadata.ts";
import { printBadValue } from "../schema/field-error.ts";
import { forbidden, invalid } from "../status/status.ts";
import { printRule, rulesOf, uncovered, type PolicyRule } from "./rbac-rules.ts";
import type { Rbac } from "./rbac.ts";

const group = "rbac.authorization.k8s.io";
/** Missing rules named in one refusal at most. */
const maxNamed = 20;

/** Makes the guard. Refuses with 403, and changed role references with 422. */
export function escalationGuard(rbac: Rbac, access: Authorizer): WriteGuard {
  return async ({ context, resource, object, old }) => {
    if (resource.group !== group) return;
    const { user } = context;
    const namespace = metaText(object, "namespace");
    const name = metaText(object, "name");
    const may = async (verb: string, plural: string, role: string): Promise<boolean> => {
      const { decision } = await access.authorize({
        user,
        verb,
        resource: {
          group,
          version: "v1",
          resource: plural,
          name: role,
          ...(namespace === "" ? {} : { namespace }),
        },
      });
      return decision === "allow";
    };
    const refuse = (missing: readonly PolicyRule[] | undefined): never => {
      const named = missing
        ? missing.slice(0, maxNamed).map(printRule).join("\n")
        : "(too many rules to compare)";
      throw forbidden(
        resource,
        name,
        `${who(user)} is attempting to grant RBAC permissions not currently held:\n${named}`,
      );
    };
    if (resource.kind === "Role" || resource.kind === "ClusterRole") {
      const unchanged =
        old !== undefined &&
        equalJson(object["rules"], old["rules"]) &&
        equalJson(object["aggregationRule"], old["aggregationRule"]);
      if (unchanged || (await may("escalate", resource.plural, name))) return;
      const wanted = isObject(object["aggregationRule"]) ? everything : rulesOf(object);
      const { rules } = await rbac.rulesFor(user, namespace);
      const missing = uncovered(rules, wanted);
      if (!missing || missing.length > 0) refuse(missing);
      return;
    }
    if (resource.kind !== "RoleBinding" && resource.kind !== "ClusterRoleBinding") return;
    if (old && !equalJson(object["roleRef"], old["roleRef"])) {
      throw invalid(resource, name, [
        {
          reason: "FieldValueInvalid",
          field: "roleRef",
          message: `Invalid value: ${printBadValue(at(object, "roleRef"))}: cannot change roleRef`,
        },
      ]);
    }
    if (old && equalJson(object["subjects"], old["subjects"])) return;
    await checkBinding(rbac, object, namespace, user, may, refuse);
  };
}

const everything: readonly PolicyRule[] = [
  { verbs: ["*"], apiGroups: ["*"], resources: ["*"], resourceNames: [], nonResourceURLs: [] },
  { verbs: ["*"], apiGroups: [], resources: [], resourceNames: [], nonResourceURLs: ["*"] },
];

async function checkBinding(
  rbac: Rbac,
  object: JsonObject,
  namespace: string,
  user: UserInfo,
  may: (verb: string, plural: string, role: string) => Promise<boolean>,
  refuse: (missing: readonly PolicyRule[] | undefined) => never,
): Promise<void> {
  const kind = stringAt(object, "roleRef", "kind") ?? "";
  const role = stringAt(object, "roleRef", "name") ?? "";
  if (await may("bind", kind === "Role" ? "roles" : "clusterroles", role)) return;
  const wanted = await rbac.rulesOfRole(kind, role, namespace);
  // A role that does not exist yet could be made to hold anything later.
  const { rules } = await rbac.rulesFor(user, namespace);
  const missing = uncovered(rules, wanted ?? everything);
  if (!missing || missing.length > 0) refuse(missing);
}

/** `user "u" (groups=["a" "b"])`. */
function who({ name, groups }: UserInfo): string {
  return `user ${JSON.stringify(name)} (groups=[${groups.map((item) => JSON.stringify(item)).join(" ")}])`;
}

/**
 * What is allowed beside RBAC objects: administrators' groups everything, everybody the health checks.
 *
 * It is asked after RBAC. Service accounts get nothing here: they have the rights RBAC gives them.
 */
import type { Authorizer, Decision } from "@kontinuum/kapi";

const healthPath = /^\/(healthz|livez|readyz)(\/|$)/;

/** Group of the server's own identity. */
const masters = "system:masters";

/** An authorizer that knows the administrators by their groups. */
export function adminAuthorizer(adminGroups: readonly string[]): Authorizer {
  const admins = new Set([masters, ...adminGroups]);
  return {
    authorize({ user, path }): Promise<Decision> {
      if (path !== undefined && healthPath.test(path)) {
        return Promise.resolve({ decision: "allow", reason: "health checks are open" });
      }
      const group = user.groups.find((name) => admins.has(name));
      return Promise.resolve(
        group === undefined
          ? { decision: "noOpinion", reason: "" }
          : { decision: "allow", reason: `member of the administrators' group ${JSON.stringify(group)}` },
      );
    },
  };
}

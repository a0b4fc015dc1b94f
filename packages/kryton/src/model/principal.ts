/**
 * Who calls, and what that allows: a role (cumulative) intersected with a list of projects.
 */

/** Roles, weakest first. */
export const roles = ["viewer", "operator", "admin"] as const;
/** One of {@link roles}. */
export type Role = (typeof roles)[number];

/** An authenticated caller. */
export interface Principal {
  readonly name: string;
  readonly role: Role;
  /** Project names, or `*` for all. */
  readonly projects: readonly string[];
  /** For the bearer of a console ticket: who asked for it. */
  readonly issuer?: Principal;
}

/** True when `principal` holds `needed` or more. */
export function hasRole(principal: Principal, needed: Role): boolean {
  return roles.indexOf(principal.role) >= roles.indexOf(needed);
}

/** True when the project is in the caller's list. */
export function hasProject(principal: Principal, project: string): boolean {
  return principal.projects.includes("*") || principal.projects.includes(project);
}

/** True when the caller may act with `needed` in `project`. */
export function allowed(principal: Principal, needed: Role, project: string): boolean {
  return hasRole(principal, needed) && hasProject(principal, project);
}

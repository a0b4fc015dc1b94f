/**
 * In which order groups and versions are shown, which decides what an ambiguous short name means.
 */

/** Priorities of the built-in groups, as the upstream server has them. */
const builtin: Readonly<Record<string, number>> = {
  "": 20_000,
  "apiregistration.k8s.io": 18_000,
  apps: 17_800,
  "events.k8s.io": 17_750,
  "authentication.k8s.io": 17_700,
  "authorization.k8s.io": 17_600,
  autoscaling: 17_500,
  batch: 17_400,
  "certificates.k8s.io": 17_300,
  "networking.k8s.io": 17_200,
  policy: 17_100,
  "rbac.authorization.k8s.io": 17_000,
  "storage.k8s.io": 16_800,
  "apiextensions.k8s.io": 16_700,
  "admissionregistration.k8s.io": 16_700,
  "scheduling.k8s.io": 16_600,
  "coordination.k8s.io": 16_500,
  "node.k8s.io": 16_300,
  "discovery.k8s.io": 16_200,
  "flowcontrol.apiserver.k8s.io": 16_100,
};

/** Priority of groups that definitions bring. */
export const customGroupPriority = 1000;
/** Version priority of what definitions bring. */
export const customVersionPriority = 100;

/** Priority of a group; higher is shown first. */
export function groupPriority(group: string): number {
  return builtin[group] ?? customGroupPriority;
}

/** Orders versions the Kubernetes way: v2 > v1 > v1beta2 > v1beta1 > v1alpha1 > others by name. */
export function compareVersions(a: string, b: string): number {
  const left = readVersion(a);
  const right = readVersion(b);
  if (!left || !right) {
    if (left) return -1;
    if (right) return 1;
    return a < b ? -1 : a > b ? 1 : 0;
  }
  return right.stage - left.stage || right.major - left.major || right.minor - left.minor;
}

function readVersion(version: string): { stage: number; major: number; minor: number } | undefined {
  const match = /^v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?$/.exec(version);
  if (!match) return undefined;
  const stage = match[2] === undefined ? 3 : match[2] === "beta" ? 2 : 1;
  return { stage, major: Number(match[1]), minor: Number(match[3] ?? 0) };
}

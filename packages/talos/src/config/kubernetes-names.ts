/**
 * Kubernetes' rules for labels, annotation keys and taints, as a node applies them to its own.
 */
import { isDnsSubdomain } from "@kontinuum/std";

const namePart = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;

/** An optional DNS prefix and a name (Kubernetes, "Labels and Selectors"). */
export function isQualifiedName(key: string): boolean {
  const parts = key.split("/");
  const [prefix, name] = parts.length === 1 ? [undefined, parts[0]] : parts;
  if (parts.length > 2 || name === undefined || !namePart.test(name)) return false;
  return prefix === undefined || isDnsSubdomain(prefix);
}

/** Empty, or up to 63 characters that begin and end alphanumeric. */
export function isLabelValue(value: string): boolean {
  return value === "" || namePart.test(value);
}

const effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/** `value:effect` or `effect`. */
export function isTaint(taint: string): boolean {
  const colon = taint.indexOf(":");
  const value = colon < 0 ? "" : taint.slice(0, colon);
  return isLabelValue(value) && effects.includes(taint.slice(colon + 1));
}

/**
 * Addresses of pages. One noun, one list address, one detail address.
 */

/** The kinds that have pages. */
export type PageKind = "zones" | "talosclusters" | "instances" | "kontinuums" | "addons" | "instancepools";

/** The list of a kind in a namespace. */
export const listHref = (namespace: string, kind: PageKind): string =>
  `/app/kontinuum.sh/namespaces/${encodeURIComponent(namespace)}/${kind}`;

/** One object. */
export const objectHref = (namespace: string, kind: PageKind, name: string): string =>
  `${listHref(namespace, kind)}/${encodeURIComponent(name)}`;

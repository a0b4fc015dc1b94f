/**
 * Role-based access control out of the watch caches of roles and bindings.
 *
 * Additive only: nothing here denies. Compiled bindings are kept until one of the four caches changes, so a change
 * takes effect with the watch event that brings it.
 */
import { isObject, stringAt, type JsonObject } from "@kontinuum/std";
import type { AccessAttributes, Authorizer, Decision, UserInfo } from "../contract.ts";
import type { ResourceSet } from "../registry/resource-set.ts";
import type { ObjectStorage } from "../registry/storage.ts";
import type { ResourceStore } from "../registry/resource-store.ts";
import { entryObject } from "../watch-cache/entry.ts";
import { ruleAllows, rulesOf, type PolicyRule } from "./rbac-rules.ts";

const group = "rbac.authorization.k8s.io";

interface Subject {
  readonly kind: "User" | "Group";
  readonly name: string;
}

interface Binding {
  readonly description: string;
  readonly subjects: readonly { readonly subject: Subject; readonly text: string }[];
  readonly roleText: string;
  readonly rules: readonly PolicyRule[];
  /** The role does not exist. */
  readonly missing: boolean;
}

interface Compiled {
  readonly stamp: string;
  readonly cluster: readonly Binding[];
  readonly byNamespace: ReadonlyMap<string, readonly Binding[]>;
}

/** Rules that hold for somebody somewhere. */
export interface HeldRules {
  readonly rules: readonly PolicyRule[];
  /** Notes about what could not be evaluated. */
  readonly notes: readonly string[];
}

/** The RBAC authorizer. */
export class Rbac implements Authorizer {
  readonly #resources: ResourceSet;
  readonly #storage: ObjectStorage;
  #compiled: Compiled | undefined;

  constructor(resources: ResourceSet, storage: ObjectStorage) {
    this.#resources = resources;
    this.#storage = storage;
  }

  /** Whether the kinds are served at all. */
  get isServed(): boolean {
    return this.#store("clusterrolebindings") !== undefined;
  }

  async authorize(attributes: AccessAttributes): Promise<Decision> {
    const compiled = await this.#compile();
    const { user } = attributes;
    const notes: string[] = [];
    const namespace = attributes.resource?.namespace;
    const bindings =
      namespace === undefined
        ? [compiled.cluster]
        : [compiled.cluster, compiled.byNamespace.get(namespace) ?? []];
    for (const list of bindings) {
      for (const binding of list) {
        const found = binding.subjects.find(({ subject }) => isSubject(user, subject));
        if (!found) continue;
        if (binding.missing) notes.push(`${binding.roleText} not found`);
        if (!binding.rules.some((rule) => ruleAllows(rule, attributes))) continue;
        return {
          decision: "allow",
          reason: `RBAC: allowed by ${binding.description} of ${binding.roleText} to ${found.text}`,
        };
      }
    }
    return { decision: "noOpinion", reason: notes.join(", ") };
  }

  /** Every rule that holds for a user in a namespace (or, empty, only cluster-wide). */
  async rulesFor(user: UserInfo, namespace: string): Promise<HeldRules> {
    const compiled = await this.#compile();
    const rules: PolicyRule[] = [];
    const notes: string[] = [];
    for (const binding of [...compiled.cluster, ...(compiled.byNamespace.get(namespace) ?? [])]) {
      if (!binding.subjects.some(({ subject }) => isSubject(user, subject))) continue;
      if (binding.missing) notes.push(`${binding.roleText} not found`);
      rules.push(...binding.rules);
    }
    return { rules, notes };
  }

  /** Rules of the role a binding refers to; `undefined` when there is no such role. */
  async rulesOfRole(
    kind: string,
    name: string,
    namespace: string,
  ): Promise<readonly PolicyRule[] | undefined> {
    const store = this.#store(kind === "Role" ? "roles" : "clusterroles");
    if (!store) return undefined;
    const entry = await store.read(store.key(kind === "Role" ? namespace : "", name));
    return entry && entry.error === undefined ? rulesOf(entryObject(entry)) : undefined;
  }

  #store(plural: string): ResourceStore | undefined {
    const resource = this.#resources.get(group, "v1", plural);
    return resource && this.#storage.of(resource);
  }

  /** Loads the caches, so that the first request does not wait for them. */
  async load(): Promise<void> {
    if (this.isServed) await this.#compile();
  }

  async #compile(): Promise<Compiled> {
    const stores = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"].map((plural) =>
      this.#store(plural),
    );
    const [clusterRoles, clusterBindings, roles, bindings] = stores;
    await Promise.all(
      stores.map((store) => (store && store.cache.revision === 0 ? store.cache.load() : undefined)),
    );
    const stamp = stores
      .map((store) => `${store?.cache.loadedRevision ?? 0}.${store?.cache.lastChange ?? 0}`)
      .join();
    if (this.#compiled?.stamp === stamp) return this.#compiled;
    const rulesByRole = new Map<string, readonly PolicyRule[]>();
    for (const entry of clusterRoles?.cache.list() ?? [])
      if (entry.error === undefined) rulesByRole.set(`/${entry.name}`, rulesOf(entryObject(entry)));
    for (const entry of roles?.cache.list() ?? []) {
      if (entry.error === undefined)
        rulesByRole.set(`${entry.namespace}/${entry.name}`, rulesOf(entryObject(entry)));
    }
    const cluster: Binding[] = [];
    for (const entry of clusterBindings?.cache.list() ?? []) {
      if (entry.error === undefined)
        cluster.push(bindingOf("ClusterRoleBinding", entry.name, "", entryObject(entry), rulesByRole));
    }
    const byNamespace = new Map<string, Binding[]>();
    for (const entry of bindings?.cache.list() ?? []) {
      if (entry.error !== undefined) continue;
      const made = bindingOf("RoleBinding", entry.name, entry.namespace, entryObject(entry), rulesByRole);
      const present = byNamespace.get(entry.namespace);
      if (present) present.push(made);
      else byNamespace.set(entry.namespace, [made]);
    }
    this.#compiled = { stamp, cluster, byNamespace };
    return this.#compiled;
  }
}

function bindingOf(
  kind: string,
  name: string,
  namespace: string,
  object: JsonObject,
  rulesByRole: ReadonlyMap<string, readonly PolicyRule[]>,
): Binding {
  const roleKind = stringAt(object, "roleRef", "kind") ?? "";
  const roleName = stringAt(object, "roleRef", "name") ?? "";
  const known = roleKind === "ClusterRole" || (roleKind === "Role" && namespace !== "");
  const rules = known
    ? rulesByRole.get(roleKind === "Role" ? `${namespace}/${roleName}` : `/${roleName}`)
    : undefined;
  const subjects = Array.isArray(object["subjects"]) ? object["subjects"] : [];
  return {
    description: `${kind} ${JSON.stringify(namespace === "" ? name : `${name}/${namespace}`)}`,
    roleText: `${roleKind} ${JSON.stringify(roleName)}`,
    subjects: subjects.flatMap((subject: unknown) => subjectOf(subject)),
    rules: rules ?? [],
    missing: rules === undefined,
  };
}

function subjectOf(value: unknown): Binding["subjects"] {
  if (!isObject(value)) return [];
  const { kind, name, namespace } = value;
  if (typeof name !== "string") return [];
  if (kind === "User" || kind === "Group")
    return [{ subject: { kind, name }, text: `${kind} ${JSON.stringify(name)}` }];
  if (kind === "ServiceAccount" && typeof namespace === "string") {
    return [
      {
        subject: { kind: "User", name: `system:serviceaccount:${namespace}:${name}` },
        text: `ServiceAccount ${JSON.stringify(`${name}/${namespace}`)}`,
      },
    ];
  }
  return [];
}

function isSubject(user: UserInfo, { kind, name }: Subject): boolean {
  return kind === "User" ? user.name === name : user.groups.includes(name);
}

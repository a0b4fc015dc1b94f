/**
 * The server's own controllers: what makes it more than a store with an API.
 */
import type { Controller, Transport } from "@kontinuum/controller";
import type { Edges } from "@kontinuum/std";
import type { Aggregator } from "../aggregation/aggregator.ts";
import type { ServiceAccountTokens } from "../auth/service-account-tokens.ts";
import type { CoreObjects } from "../registry/core-objects.ts";
import type { ResourceSet } from "../registry/resource-set.ts";
import type { ObjectStorage } from "../registry/storage.ts";
import type { ResourceDefinition } from "../resource.ts";
import type { CrdLifecycle } from "./crd-lifecycle.ts";
import { GarbageCollector } from "./garbage-collector.ts";
import { LocalApiServices } from "./local-api-services.ts";
import { NamespaceContents } from "./namespace-contents.ts";
import { NamespaceDeletion } from "./namespace-deletion.ts";
import { QuotaUsage } from "./quota-usage.ts";
import { RoleAggregation } from "./role-aggregation.ts";
import { TokenSecrets } from "./token-secrets.ts";

/** What the controllers share. */
export interface OwnControllersOptions {
  readonly edges: Edges;
  readonly resources: ResourceSet;
  readonly storage: ObjectStorage;
  readonly transport: Transport;
  readonly objects: CoreObjects;
  readonly crds: CrdLifecycle | undefined;
  readonly aggregator: Aggregator | undefined;
  readonly tokens: ServiceAccountTokens | undefined;
  /** PEM of the authority that clients inside the cluster trust. */
  readonly authority: string;
  readonly rbac: boolean;
}

/** The controllers for what is served. */
export function ownControllers(options: OwnControllersOptions): readonly Controller[] {
  const { edges, resources, storage, transport, objects, crds, aggregator, tokens, authority } = options;
  const served = (group: string, plural: string): ResourceDefinition | undefined =>
    resources.get(group, "v1", plural);
  const controllers: Controller[] = [new GarbageCollector({ edges, resources, storage, transport })];
  if (crds) controllers.push(crds);
  const namespaces = served("", "namespaces");
  if (namespaces) {
    const unreachableGroups = (): readonly string[] => aggregator?.unreachable() ?? [];
    controllers.push(
      new NamespaceDeletion({ edges, resources, storage, transport, unreachableGroups }, namespaces),
    );
    controllers.push(new NamespaceContents(edges, resources, storage, transport, authority));
  }
  const clusterRoles = served("rbac.authorization.k8s.io", "clusterroles");
  if (clusterRoles && options.rbac)
    controllers.push(new RoleAggregation(edges, clusterRoles, storage.of(clusterRoles), transport));
  const quotas = served("", "resourcequotas");
  if (quotas) controllers.push(new QuotaUsage(edges, resources, storage, quotas, transport));
  const apiServices = served("apiregistration.k8s.io", "apiservices");
  if (apiServices)
    controllers.push(new LocalApiServices(edges, resources, storage.of(apiServices), transport));
  if (aggregator) controllers.push(aggregator);
  const secrets = served("", "secrets");
  const accounts = served("", "serviceaccounts");
  if (tokens && secrets && accounts) {
    controllers.push(
      new TokenSecrets({
        edges,
        secrets: storage.of(secrets),
        accounts: storage.of(accounts),
        transport,
        tokens,
        read: objects.read,
        authority,
      }),
    );
  }
  return controllers;
}

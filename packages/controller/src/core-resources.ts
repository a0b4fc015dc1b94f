/**
 * The built-in kinds that nearly every controller touches, with the fields such code reads.
 *
 * Fields that are not listed pass through untouched. Whoever needs more of a kind declares a wider type
 * over the same path with `resource({...})`.
 *
 * Source: Kubernetes API reference, release 1.35.
 */
import type { JsonObject } from "@kontinuum/std";
import { conditions } from "./condition.ts";
import type { Condition, KubeObject, Resource } from "./object.ts";
import { resource } from "./resource.ts";
import * as shape from "./shape.ts";
import { boolean, intOrString, kubeObject, list, map, number, optional, string, unknown } from "./shape.ts";

/** A namespace. */
export interface Namespace extends KubeObject {
  spec?: { finalizers?: string[] };
  status?: { phase?: string };
}

/** `namespaces`. */
export const namespaces: Resource<Namespace> = resource<Namespace>({
  group: "",
  version: "v1",
  kind: "Namespace",
  plural: "namespaces",
  namespaced: false,
  shape: shape.object<Namespace>({
    ...kubeObject,
    spec: optional(shape.object({ finalizers: optional(list(string)) })),
    status: optional(shape.object({ phase: optional(string) })),
  }),
});

/** A secret. `data` is base64; `stringData` is write-only. */
export interface Secret extends KubeObject {
  type?: string;
  data?: Record<string, string>;
  stringData?: Record<string, string>;
  immutable?: boolean;
}

/** `secrets`. */
export const secrets: Resource<Secret> = resource<Secret>({
  group: "",
  version: "v1",
  kind: "Secret",
  plural: "secrets",
  shape: shape.object<Secret>({
    ...kubeObject,
    type: optional(string),
    data: optional(map(string)),
    stringData: optional(map(string)),
    immutable: optional(boolean),
  }),
});

/** The text of one key of a secret, or `undefined`. */
export function secretText(secret: Secret, key: string): string | undefined {
  const encoded = secret.data?.[key];
  return encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString("utf8");
}

/** A config map. */
export interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
  binaryData?: Record<string, string>;
  immutable?: boolean;
}

/** `configmaps`. */
export const configMaps: Resource<ConfigMap> = resource<ConfigMap>({
  group: "",
  version: "v1",
  kind: "ConfigMap",
  plural: "configmaps",
  shape: shape.object<ConfigMap>({
    ...kubeObject,
    data: optional(map(string)),
    binaryData: optional(map(string)),
    immutable: optional(boolean),
  }),
});

/** A service account. */
export interface ServiceAccount extends KubeObject {
  secrets?: JsonObject[];
  imagePullSecrets?: JsonObject[];
  automountServiceAccountToken?: boolean;
}

/** `serviceaccounts`. */
export const serviceAccounts: Resource<ServiceAccount> = resource<ServiceAccount>({
  group: "",
  version: "v1",
  kind: "ServiceAccount",
  plural: "serviceaccounts",
  shape: shape.object<ServiceAccount>({
    ...kubeObject,
    secrets: optional(list(map(unknown))),
    imagePullSecrets: optional(list(map(unknown))),
    automountServiceAccountToken: optional(boolean),
  }),
});

/** A port of a service. */
export interface ServicePort {
  name?: string;
  protocol?: string;
  appProtocol?: string;
  port: number;
  targetPort?: number | string;
  nodePort?: number;
}

/** A service. */
export interface Service extends KubeObject {
  spec?: {
    type?: string;
    clusterIP?: string;
    selector?: Record<string, string>;
    ports?: ServicePort[];
  };
  status?: { loadBalancer?: { ingress?: { ip?: string; hostname?: string }[] } };
}

/** `services`. */
export const services: Resource<Service> = resource<Service>({
  group: "",
  version: "v1",
  kind: "Service",
  plural: "services",
  shape: shape.object<Service>({
    ...kubeObject,
    spec: optional(
      shape.object<NonNullable<Service["spec"]>>({
        type: optional(string),
        clusterIP: optional(string),
        selector: optional(map(string)),
        ports: optional(
          list(
            shape.object<ServicePort>({
              name: optional(string),
              protocol: optional(string),
              appProtocol: optional(string),
              port: number,
              targetPort: optional(intOrString),
              nodePort: optional(number),
            }),
          ),
        ),
      }),
    ),
    status: optional(
      shape.object<NonNullable<Service["status"]>>({
        loadBalancer: optional(
          shape.object<{ ingress?: { ip?: string; hostname?: string }[] }>({
            ingress: optional(
              list(
                shape.object<{ ip?: string; hostname?: string }>({
                  ip: optional(string),
                  hostname: optional(string),
                }),
              ),
            ),
          }),
        ),
      }),
    ),
  }),
});

/** A pod template; containers are left as JSON. */
export interface PodTemplate {
  metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
  spec?: JsonObject;
}

/** Shape of {@link PodTemplate}. */
export const podTemplate: shape.Shape<PodTemplate> = shape.object<PodTemplate>({
  metadata: optional(
    shape.object<NonNullable<PodTemplate["metadata"]>>({
      labels: optional(map(string)),
      annotations: optional(map(string)),
    }),
  ),
  spec: optional(map(unknown)),
});

/** A deployment. */
export interface Deployment extends KubeObject {
  spec: {
    replicas?: number;
    selector: { matchLabels?: Record<string, string>; matchExpressions?: JsonObject[] };
    template: PodTemplate;
  };
  status?: {
    observedGeneration?: number;
    replicas?: number;
    readyReplicas?: number;
    availableReplicas?: number;
    updatedReplicas?: number;
    conditions?: JsonObject[];
  };
}

/** `deployments.apps`. */
export const deployments: Resource<Deployment> = resource<Deployment>({
  group: "apps",
  version: "v1",
  kind: "Deployment",
  plural: "deployments",
  shape: shape.object<Deployment>({
    ...kubeObject,
    spec: shape.object<Deployment["spec"]>({
      replicas: optional(number),
      selector: shape.object<Deployment["spec"]["selector"]>({
        matchLabels: optional(map(string)),
        matchExpressions: optional(list(map(unknown))),
      }),
      template: podTemplate,
    }),
    status: optional(
      shape.object<NonNullable<Deployment["status"]>>({
        observedGeneration: optional(number),
        replicas: optional(number),
        readyReplicas: optional(number),
        availableReplicas: optional(number),
        updatedReplicas: optional(number),
        conditions: optional(list(map(unknown))),
      }),
    ),
  }),
});

/** A lease. Times are `MicroTime` (six decimals). */
export interface Lease extends KubeObject {
  spec?: {
    holderIdentity?: string;
    leaseDurationSeconds?: number;
    acquireTime?: string;
    renewTime?: string;
    leaseTransitions?: number;
  };
}

/** `leases.coordination.k8s.io`. */
export const leases: Resource<Lease> = resource<Lease>({
  group: "coordination.k8s.io",
  version: "v1",
  kind: "Lease",
  plural: "leases",
  shape: shape.object<Lease>({
    ...kubeObject,
    spec: optional(
      shape.object<NonNullable<Lease["spec"]>>({
        holderIdentity: optional(string),
        leaseDurationSeconds: optional(number),
        acquireTime: optional(string),
        renewTime: optional(string),
        leaseTransitions: optional(number),
      }),
    ),
  }),
});

/** A custom resource definition; schemas are left as JSON. */
export interface CustomResourceDefinition extends KubeObject {
  spec: {
    group: string;
    scope: "Namespaced" | "Cluster";
    names: { plural: string; singular?: string; kind: string; listKind?: string };
    versions: JsonObject[];
  };
  status?: { conditions?: Condition[]; storedVersions?: string[] };
}

/** `customresourcedefinitions.apiextensions.k8s.io`. */
export const customResourceDefinitions: Resource<CustomResourceDefinition> =
  resource<CustomResourceDefinition>({
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
    namespaced: false,
    shape: shape.object<CustomResourceDefinition>({
      ...kubeObject,
      spec: shape.object<CustomResourceDefinition["spec"]>({
        group: string,
        scope: shape.oneOf("Namespaced", "Cluster"),
        names: shape.object<CustomResourceDefinition["spec"]["names"]>({
          plural: string,
          singular: optional(string),
          kind: string,
          listKind: optional(string),
        }),
        versions: list(map(unknown)),
      }),
      status: optional(
        shape.object<NonNullable<CustomResourceDefinition["status"]>>({
          conditions: optional(conditions),
          storedVersions: optional(list(string)),
        }),
      ),
    }),
  });

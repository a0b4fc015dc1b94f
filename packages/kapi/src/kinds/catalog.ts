/**
 * The built-in kinds that are served, as data: what discovery says of each beyond the published types.
 *
 * Order within a group is the order of discovery. A kind that is not in this list is not served.
 */
import type { JsonObject } from "@kontinuum/std";
import type { GroupVersionKind, ResourceDefinition, SubresourceDefinition, Verb } from "../resource.ts";
import { toAutoscalerV1, toAutoscalerV2 } from "./autoscaler-versions.ts";
import { toCoreEvent, toEventsEvent } from "./event-versions.ts";
import { isTrue, items, number, text } from "./read.ts";

/** What the catalog says of a kind. */
export interface CatalogEntry {
  readonly apiVersion: string;
  readonly kind: string;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly subresources?: readonly SubresourceDefinition[];
  /** Field selectors beyond metadata. */
  readonly selectable?: readonly string[];
  /** What some of them compare as; the text at the path for all others. */
  readonly selectableValues?: Readonly<Record<string, (object: JsonObject) => string>>;
  /** Standard verbs that the kind lacks. */
  readonly without?: readonly Verb[];
  readonly nameRule?: ResourceDefinition["nameRule"];
  readonly createOnUpdate?: boolean;
  readonly unconditionalUpdate?: boolean;
  readonly defaultPropagation?: ResourceDefinition["defaultPropagation"];
  readonly stored?: NonNullable<ResourceDefinition["stored"]>;
}

const read: readonly Verb[] = ["get", "patch", "update"];
const status: SubresourceDefinition = { name: "status", verbs: read };
const scaleKind: GroupVersionKind = { group: "autoscaling", version: "v1", kind: "Scale" };
const scale: SubresourceDefinition = {
  name: "scale",
  kind: scaleKind,
  verbs: read,
  scale: { specReplicas: "spec.replicas", statusReplicas: "status.replicas", selector: "spec.selector" },
};
const all = ["all"];
const extensions = ["api-extensions"];

const podFields = [
  "spec.nodeName",
  "spec.restartPolicy",
  "spec.schedulerName",
  "spec.serviceAccountName",
  "spec.hostNetwork",
  "status.phase",
  "status.podIP",
  "status.podIPs",
  "status.nominatedNodeName",
];
const replicas = { "status.replicas": (object: JsonObject) => String(number(object, "status", "replicas")) };
const objectFields = (prefix: string): string[] =>
  ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"].map(
    (name) => `${prefix}.${name}`,
  );

const core: readonly Omit<CatalogEntry, "apiVersion">[] = [
  { kind: "ConfigMap", shortNames: ["cm"] },
  { kind: "Endpoints", createOnUpdate: true, shortNames: ["ep"] },
  {
    kind: "Event",
    shortNames: ["ev"],
    createOnUpdate: true,
    selectable: [...objectFields("involvedObject"), "reason", "reportingComponent", "source", "type"],
    selectableValues: {
      source: (event) => text(event, "source", "component") || text(event, "reportingComponent"),
    },
  },
  { kind: "LimitRange", createOnUpdate: true, shortNames: ["limits"] },
  {
    kind: "Namespace",
    nameRule: "label",
    shortNames: ["ns"],
    subresources: [{ name: "finalize", verbs: ["update"] }, status],
    selectable: ["status.phase"],
    without: ["deletecollection"],
  },
  {
    kind: "Node",
    shortNames: ["no"],
    subresources: [status],
    selectable: ["spec.unschedulable"],
    selectableValues: { "spec.unschedulable": (node) => String(isTrue(node, "spec", "unschedulable")) },
  },
  { kind: "PersistentVolumeClaim", shortNames: ["pvc"], subresources: [status] },
  { kind: "PersistentVolume", shortNames: ["pv"], subresources: [status] },
  {
    kind: "Pod",
    shortNames: ["po"],
    categories: all,
    subresources: [
      { name: "binding", kind: { group: "", version: "v1", kind: "Binding" }, verbs: ["create"] },
      { name: "ephemeralcontainers", verbs: read },
      { name: "eviction", kind: { group: "policy", version: "v1", kind: "Eviction" }, verbs: ["create"] },
      { name: "resize", verbs: read },
      status,
    ],
    selectable: podFields,
    selectableValues: {
      "spec.hostNetwork": (pod) => String(isTrue(pod, "spec", "hostNetwork")),
      "status.podIPs": (pod) =>
        items(pod, "status", "podIPs")
          .map((address) => text(address, "ip"))
          .join(","),
    },
  },
  { kind: "PodTemplate" },
  {
    kind: "ReplicationController",
    defaultPropagation: "Orphan",
    shortNames: ["rc"],
    categories: all,
    subresources: [scale, status],
    selectable: ["status.replicas"],
    selectableValues: replicas,
  },
  { kind: "ResourceQuota", shortNames: ["quota"], subresources: [status] },
  { kind: "Secret", selectable: ["type"] },
  {
    kind: "ServiceAccount",
    shortNames: ["sa"],
    subresources: [
      {
        name: "token",
        kind: { group: "authentication.k8s.io", version: "v1", kind: "TokenRequest" },
        verbs: ["create"],
      },
    ],
  },
  {
    kind: "Service",
    nameRule: "dns1035",
    createOnUpdate: true,
    shortNames: ["svc"],
    categories: all,
    subresources: [status],
    selectable: ["spec.clusterIP", "spec.type"],
  },
];

const groups: Readonly<Record<string, readonly Omit<CatalogEntry, "apiVersion">[]>> = {
  v1: core,
  "apiregistration.k8s.io/v1": [
    {
      kind: "APIService",
      nameRule: "path",
      unconditionalUpdate: false,
      categories: extensions,
      subresources: [status],
    },
  ],
  "apps/v1": [
    { kind: "ControllerRevision" },
    { kind: "DaemonSet", shortNames: ["ds"], categories: all, subresources: [status] },
    { kind: "Deployment", shortNames: ["deploy"], categories: all, subresources: [scale, status] },
    {
      kind: "ReplicaSet",
      shortNames: ["rs"],
      categories: all,
      subresources: [scale, status],
      selectable: ["status.replicas"],
      selectableValues: replicas,
    },
    { kind: "StatefulSet", shortNames: ["sts"], categories: all, subresources: [scale, status] },
  ],
  "events.k8s.io/v1": [
    {
      kind: "Event",
      shortNames: ["ev"],
      createOnUpdate: true,
      stored: { group: "", version: "v1", toStored: toCoreEvent, fromStored: toEventsEvent },
      selectable: [...objectFields("regarding"), "reason", "reportingController", "type"],
    },
  ],
  "authentication.k8s.io/v1": [{ kind: "SelfSubjectReview" }, { kind: "TokenReview" }],
  "authorization.k8s.io/v1": [
    { kind: "LocalSubjectAccessReview" },
    { kind: "SelfSubjectAccessReview" },
    { kind: "SelfSubjectRulesReview" },
    { kind: "SubjectAccessReview" },
  ],
  "autoscaling/v2": [
    { kind: "HorizontalPodAutoscaler", shortNames: ["hpa"], categories: all, subresources: [status] },
  ],
  "autoscaling/v1": [
    {
      kind: "HorizontalPodAutoscaler",
      shortNames: ["hpa"],
      categories: all,
      subresources: [status],
      stored: { group: "autoscaling", version: "v2", toStored: toAutoscalerV2, fromStored: toAutoscalerV1 },
    },
  ],
  "batch/v1": [
    { kind: "CronJob", shortNames: ["cj"], categories: all, subresources: [status] },
    {
      kind: "Job",
      defaultPropagation: "Orphan",
      categories: all,
      subresources: [status],
      selectable: ["status.successful"],
      selectableValues: { "status.successful": (job) => String(number(job, "status", "succeeded")) },
    },
  ],
  "certificates.k8s.io/v1": [
    {
      kind: "CertificateSigningRequest",
      shortNames: ["csr"],
      subresources: [{ name: "approval", verbs: read }, status],
      selectable: ["spec.signerName"],
    },
  ],
  "networking.k8s.io/v1": [
    { kind: "IngressClass" },
    { kind: "Ingress", shortNames: ["ing"], subresources: [status] },
    { kind: "IPAddress", nameRule: "path", shortNames: ["ip"] },
    { kind: "NetworkPolicy", shortNames: ["netpol"] },
    { kind: "ServiceCIDR", subresources: [status] },
  ],
  "policy/v1": [{ kind: "PodDisruptionBudget", shortNames: ["pdb"], subresources: [status] }],
  "rbac.authorization.k8s.io/v1": [
    { kind: "ClusterRoleBinding", nameRule: "path", createOnUpdate: true },
    { kind: "ClusterRole", nameRule: "path", createOnUpdate: true },
    { kind: "RoleBinding", nameRule: "path", createOnUpdate: true },
    { kind: "Role", nameRule: "path", createOnUpdate: true },
  ],
  "storage.k8s.io/v1": [
    { kind: "CSIDriver" },
    { kind: "CSINode" },
    { kind: "CSIStorageCapacity" },
    { kind: "StorageClass", shortNames: ["sc"] },
    { kind: "VolumeAttachment", subresources: [status] },
    { kind: "VolumeAttributesClass", shortNames: ["vac"] },
  ],
  "admissionregistration.k8s.io/v1": [
    { kind: "MutatingWebhookConfiguration", categories: extensions },
    { kind: "ValidatingAdmissionPolicy", categories: extensions, subresources: [status] },
    { kind: "ValidatingAdmissionPolicyBinding", categories: extensions },
    { kind: "ValidatingWebhookConfiguration", categories: extensions },
  ],
  "apiextensions.k8s.io/v1": [
    {
      kind: "CustomResourceDefinition",
      unconditionalUpdate: false,
      shortNames: ["crd", "crds"],
      categories: extensions,
      subresources: [status],
    },
  ],
  "scheduling.k8s.io/v1": [{ kind: "PriorityClass", shortNames: ["pc"] }],
  "coordination.k8s.io/v1": [{ kind: "Lease", createOnUpdate: true, unconditionalUpdate: false }],
  "node.k8s.io/v1": [{ kind: "RuntimeClass" }],
  "discovery.k8s.io/v1": [{ kind: "EndpointSlice" }],
  "flowcontrol.apiserver.k8s.io/v1": [
    { kind: "FlowSchema", subresources: [status] },
    { kind: "PriorityLevelConfiguration", subresources: [status] },
  ],
  "resource.k8s.io/v1": [
    { kind: "DeviceClass" },
    { kind: "ResourceClaim", subresources: [status] },
    { kind: "ResourceClaimTemplate" },
    { kind: "ResourceSlice", selectable: ["spec.nodeName", "spec.driver"] },
  ],
};

/** Every served kind. */
export const catalog: readonly CatalogEntry[] = Object.entries(groups).flatMap(([apiVersion, entries]) =>
  entries.map((entry) => ({ ...entry, apiVersion })),
);

/**
 * The cells of nodes, events, namespaces, configuration, access and admission.
 */
import { at, type JsonObject } from "@kontinuum/std";
import { humanDuration } from "../../crd/human-duration.ts";
import { child, entries, has, isTrue, items, number, text } from "../read.ts";
import type { Cell, CellTable } from "./cell.ts";
import { age, none } from "./format.ts";

function nodeStatus(node: JsonObject): string {
  const ready = items(node, "status", "conditions").find((condition) => text(condition, "type") === "Ready");
  const state = ready === undefined ? "Unknown" : text(ready, "status") === "True" ? "Ready" : "NotReady";
  return isTrue(node, "spec", "unschedulable") ? `${state},SchedulingDisabled` : state;
}

function nodeRoles(node: JsonObject): string {
  const roles = new Set<string>();
  for (const [key, value] of entries(node, "metadata", "labels")) {
    if (key.startsWith("node-role.kubernetes.io/")) roles.add(key.slice("node-role.kubernetes.io/".length));
    else if (key === "kubernetes.io/role" && typeof value === "string") roles.add(value);
  }
  roles.delete("");
  return roles.size === 0 ? none : [...roles].toSorted().join(",");
}

const nodeAddress =
  (type: string): Cell =>
  (node) =>
    text(
      items(node, "status", "addresses").find((address) => text(address, "type") === type),
      "address",
    ) || none;

const nodeInfo =
  (field: string): Cell =>
  (node) =>
    text(node, "status", "nodeInfo", field) || "<unknown>";

const firstSeen = (event: JsonObject, now: number): string =>
  age(text(event, "firstTimestamp") || text(event, "eventTime"), now);

function lastSeen(event: JsonObject, now: number): string {
  if (has(event, "series")) return age(text(event, "series", "lastObservedTime"), now);
  return has(event, "lastTimestamp") ? age(text(event, "lastTimestamp"), now) : firstSeen(event, now);
}

function eventSource(event: JsonObject): string {
  const component = text(event, "source", "component") || text(event, "reportingComponent");
  const instance = text(event, "source", "host") || text(event, "reportingInstance");
  return instance === "" ? component : `${component}, ${instance}`;
}

/** Cells of events in the form of the core group. */
export const eventCells: Readonly<Record<string, Cell>> = {
  "Last Seen": lastSeen,
  Type: (event) => text(event, "type"),
  Reason: (event) => text(event, "reason"),
  Object: (event) => {
    const kind = text(event, "involvedObject", "kind").toLowerCase();
    const name = text(event, "involvedObject", "name");
    return name === "" ? kind : `${kind}/${name}`;
  },
  Subobject: (event) => text(event, "involvedObject", "fieldPath"),
  Source: eventSource,
  Message: (event) => text(event, "message").trim(),
  "First Seen": firstSeen,
  Count: (event) => number(event, "series", "count") || number(event, "count") || 1,
};

function quota(limits: boolean): Cell {
  return (object) =>
    entries(object, "status", "hard")
      .filter(([name]) => name.startsWith("limits.") === limits)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, hard]) => `${name}: ${text(object, "status", "used", name) || "0"}/${String(hard)}`)
      .join(", ");
}

const subjects =
  (kind: string): Cell =>
  (binding) =>
    items(binding, "subjects")
      .filter((subject) => text(subject, "kind") === kind)
      .map((subject) =>
        kind === "ServiceAccount"
          ? `${text(subject, "namespace")}/${text(subject, "name")}`
          : text(subject, "name"),
      )
      .join(", ");

const bindingCells: Readonly<Record<string, Cell>> = {
  Role: (binding) => `${text(binding, "roleRef", "kind")}/${text(binding, "roleRef", "name")}`,
  Users: subjects("User"),
  Groups: subjects("Group"),
  ServiceAccounts: subjects("ServiceAccount"),
};

function signingState(request: JsonObject): string {
  const types = new Set(items(request, "status", "conditions").map((condition) => text(condition, "type")));
  let state = types.has("Denied") ? "Denied" : types.has("Approved") ? "Approved" : "Pending";
  if (types.has("Failed")) state += ",Failed";
  if (text(request, "status", "certificate") !== "") state += ",Issued";
  return state;
}

function available(service: JsonObject): string {
  const condition = items(service, "status", "conditions").find((item) => text(item, "type") === "Available");
  if (condition === undefined) return "Unknown";
  const status = text(condition, "status");
  return status === "True" ? status : `${status} (${text(condition, "reason")})`;
}

const paramKind: Cell = (policy) =>
  has(policy, "spec", "paramKind")
    ? `${text(policy, "spec", "paramKind", "apiVersion")}/${text(policy, "spec", "paramKind", "kind")}`
    : "<unset>";

function paramReference(binding: JsonObject): string {
  const reference = child(binding, "spec", "paramRef");
  if (reference === undefined) return "<unset>";
  const namespace = text(reference, "namespace");
  return namespace === "" ? text(reference, "name") : `${namespace}/${text(reference, "name")}`;
}

const dangling: Cell = (schema) =>
  text(
    items(schema, "status", "conditions").find((condition) => text(condition, "type") === "Dangling"),
    "status",
  ) || "?";

const queuing =
  (field: string): Cell =>
  (level) => {
    const found = at(level, "spec", "limited", "limitResponse", "queuing", field);
    return typeof found === "number" ? found : none;
  };

const webhooks: Readonly<Record<string, Cell>> = { Webhooks: (object) => items(object, "webhooks").length };

/** Cells of the remaining kinds. */
export const clusterCells: CellTable = {
  "v1/Node": {
    Status: nodeStatus,
    Roles: nodeRoles,
    Version: (node) => text(node, "status", "nodeInfo", "kubeletVersion"),
    "Internal-IP": nodeAddress("InternalIP"),
    "External-IP": nodeAddress("ExternalIP"),
    "OS-Image": nodeInfo("osImage"),
    "Kernel-Version": nodeInfo("kernelVersion"),
    "Container-Runtime": nodeInfo("containerRuntimeVersion"),
  },
  "v1/Event": eventCells,
  "v1/Namespace": { Status: (object) => text(object, "status", "phase") },
  "v1/Secret": { Type: (object) => text(object, "type"), Data: (object) => entries(object, "data").length },
  "v1/ConfigMap": { Data: (object) => entries(object, "data").length + entries(object, "binaryData").length },
  "v1/ServiceAccount": { Secrets: (object) => items(object, "secrets").length },
  "v1/ResourceQuota": { Request: quota(false), Limit: quota(true) },
  "rbac.authorization.k8s.io/v1/RoleBinding": bindingCells,
  "rbac.authorization.k8s.io/v1/ClusterRoleBinding": bindingCells,
  "certificates.k8s.io/v1/CertificateSigningRequest": {
    SignerName: (object) => text(object, "spec", "signerName"),
    Requestor: (object) => text(object, "spec", "username"),
    RequestedDuration: (object) =>
      has(object, "spec", "expirationSeconds")
        ? humanDuration(number(object, "spec", "expirationSeconds") * 1000)
        : none,
    Condition: signingState,
  },
  "coordination.k8s.io/v1/Lease": { Holder: (object) => text(object, "spec", "holderIdentity") },
  "apiregistration.k8s.io/v1/APIService": {
    Service: (object) =>
      has(object, "spec", "service")
        ? `${text(object, "spec", "service", "namespace")}/${text(object, "spec", "service", "name")}`
        : "Local",
    Available: available,
  },
  "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration": webhooks,
  "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration": webhooks,
  "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy": {
    Validations: (object) => items(object, "spec", "validations").length,
    ParamKind: paramKind,
  },
  "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding": {
    PolicyName: (object) => text(object, "spec", "policyName"),
    ParamRef: paramReference,
  },
  "policy/v1/PodDisruptionBudget": {
    "Min Available": (object) =>
      has(object, "spec", "minAvailable") ? String(at(object, "spec", "minAvailable")) : "N/A",
    "Max Unavailable": (object) =>
      has(object, "spec", "maxUnavailable") ? String(at(object, "spec", "maxUnavailable")) : "N/A",
    "Allowed Disruptions": (object) => number(object, "status", "disruptionsAllowed"),
  },
  "scheduling.k8s.io/v1/PriorityClass": {
    Value: (object) => number(object, "value"),
    "Global-Default": (object) => isTrue(object, "globalDefault"),
    PreemptionPolicy: (object) => text(object, "preemptionPolicy"),
  },
  "node.k8s.io/v1/RuntimeClass": { Handler: (object) => text(object, "handler") },
  "flowcontrol.apiserver.k8s.io/v1/FlowSchema": {
    PriorityLevel: (object) => text(object, "spec", "priorityLevelConfiguration", "name") || none,
    MatchingPrecedence: (object) => number(object, "spec", "matchingPrecedence"),
    DistinguisherMethod: (object) => text(object, "spec", "distinguisherMethod", "type") || none,
    MissingPL: dangling,
  },
  "flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration": {
    Type: (object) => text(object, "spec", "type"),
    NominalConcurrencyShares: (object) =>
      at(object, "spec", "limited", "nominalConcurrencyShares") ??
      at(object, "spec", "exempt", "nominalConcurrencyShares") ??
      none,
    Queues: queuing("queues"),
    HandSize: queuing("handSize"),
    QueueLengthLimit: queuing("queueLengthLimit"),
  },
};

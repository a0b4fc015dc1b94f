import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "@kontinuum/std";
import { builtinResources } from "../index.ts";
import { context, resourceOf } from "../strategy.fixture.ts";

/** What `kubectl get` shows: name to cell, without name and age. */
function cells(apiVersion: string, kind: string, object: JsonObject): JsonObject {
  const full = { metadata: { name: "x", creationTimestamp: "2025-12-31T23:58:00Z" }, ...object };
  const shown = resourceOf(apiVersion, kind).columns.map((column): [string, unknown] => [
    column.name,
    column.cell(full, context.now),
  ]);
  return Object.fromEntries(shown.filter(([name]) => name !== "Name" && name !== "Age"));
}

/** Columns by kind; `*` marks those of the wide form. */
const headers: Readonly<Record<string, string>> = {
  Pod: "Name Ready Status Restarts Age IP* Node* Nominated_Node* Readiness_Gates*",
  ReplicationController: "Name Desired Current Ready Age Containers* Images* Selector*",
  ReplicaSet: "Name Desired Current Ready Age Containers* Images* Selector*",
  Deployment: "Name Ready Up-to-date Available Age Containers* Images* Selector*",
  StatefulSet: "Name Ready Age Containers* Images*",
  DaemonSet:
    "Name Desired Current Ready Up-to-date Available Node_Selector Age Containers* Images* Selector*",
  Job: "Name Status Completions Duration Age Containers* Images* Selector*",
  CronJob: "Name Schedule Timezone Suspend Active Last_Schedule Age Containers* Images* Selector*",
  Service: "Name Type Cluster-IP External-IP Port(s) Age Selector*",
  Ingress: "Name Class Hosts Address Ports Age",
  IngressClass: "Name Controller Parameters Age",
  Endpoints: "Name Endpoints Age",
  EndpointSlice: "Name AddressType Ports Endpoints Age",
  Node: "Name Status Roles Age Version Internal-IP* External-IP* OS-Image* Kernel-Version* Container-Runtime*",
  Event: "Last_Seen Type Reason Object Subobject* Source* Message First_Seen* Count* Name*",
  Namespace: "Name Status Age",
  Secret: "Name Type Data Age",
  ConfigMap: "Name Data Age",
  ServiceAccount: "Name Secrets Age",
  PersistentVolume:
    "Name Capacity Access_Modes Reclaim_Policy Status Claim StorageClass VolumeAttributesClass Reason Age VolumeMode*",
  PersistentVolumeClaim:
    "Name Status Volume Capacity Access_Modes StorageClass VolumeAttributesClass Age VolumeMode*",
  StorageClass: "Name Provisioner ReclaimPolicy VolumeBindingMode AllowVolumeExpansion Age",
  HorizontalPodAutoscaler: "Name Reference Targets MinPods MaxPods Replicas Age",
  NetworkPolicy: "Name Pod-Selector Age",
  PodDisruptionBudget: "Name Min_Available Max_Unavailable Allowed_Disruptions Age",
  Role: "Name Created_At",
  ClusterRole: "Name Created_At",
  RoleBinding: "Name Role Age Users* Groups* ServiceAccounts*",
  ClusterRoleBinding: "Name Role Age Users* Groups* ServiceAccounts*",
  CustomResourceDefinition: "Name Created_At",
  APIService: "Name Service Available Age",
  Lease: "Name Holder Age",
  CertificateSigningRequest: "Name Age SignerName Requestor RequestedDuration Condition",
  MutatingWebhookConfiguration: "Name Webhooks Age",
  ValidatingWebhookConfiguration: "Name Webhooks Age",
  ValidatingAdmissionPolicy: "Name Validations ParamKind Age",
  ValidatingAdmissionPolicyBinding: "Name PolicyName ParamRef Age",
  ControllerRevision: "Name Controller Revision Age",
  ResourceQuota: "Name Request Limit Age",
  PriorityClass: "Name Value Global-Default Age PreemptionPolicy",
  RuntimeClass: "Name Handler Age",
  FlowSchema: "Name PriorityLevel MatchingPrecedence DistinguisherMethod Age MissingPL",
  PriorityLevelConfiguration: "Name Type NominalConcurrencyShares Queues HandSize QueueLengthLimit Age",
};

for (const resource of builtinResources()) {
  const expected = headers[resource.kind];
  if (expected === undefined) continue;
  test(`the columns of ${resource.group}/${resource.version} ${resource.kind}`, () => {
    const shown = resource.columns.map(
      ({ name, priority }) => `${name.replaceAll(" ", "_")}${priority > 0 ? "*" : ""}`,
    );
    assert.equal(shown.join(" "), expected);
    for (const { description } of resource.columns) assert.equal(typeof description, "string");
  });
}

test("every column of every kind has a cell of its own", () => {
  for (const resource of builtinResources()) {
    if (resource.verbs.length === 1) continue;
    const object = { metadata: { name: "x", creationTimestamp: "2026-01-01T00:00:00Z" } };
    for (const column of resource.columns) {
      assert.notEqual(column.cell(object, context.now), null, `${resource.kind} ${column.name}`);
    }
  }
});

const pod = (status: JsonObject, spec: JsonObject = {}, metadata: JsonObject = {}): JsonObject =>
  cells("v1", "Pod", {
    metadata: { name: "x", ...metadata },
    spec: { containers: [{ name: "a" }, { name: "b" }], ...spec },
    status: { phase: "Running", ...status },
  });
const running = { ready: true, restartCount: 0, state: { running: {} } };

test("the life of a pod", () => {
  assert.deepEqual(pod({ containerStatuses: [running, running] })["Ready"], "2/2");
  assert.equal(pod({ phase: "Pending" })["Status"], "Pending");
  assert.equal(
    pod({ containerStatuses: [{ ...running, state: { waiting: { reason: "CrashLoopBackOff" } } }, running] })[
      "Status"
    ],
    "CrashLoopBackOff",
  );
  assert.equal(
    pod({ containerStatuses: [{ state: { terminated: { exitCode: 3 } } }] })["Status"],
    "ExitCode:3",
  );
  assert.equal(
    pod({ containerStatuses: [{ state: { terminated: { exitCode: 137, signal: 9 } } }] })["Status"],
    "Signal:9",
  );
  assert.equal(
    pod({ phase: "Succeeded", containerStatuses: [{ state: { terminated: { reason: "Completed" } } }] })[
      "Status"
    ],
    "Completed",
  );
  assert.equal(pod({ reason: "Evicted", phase: "Failed" })["Status"], "Evicted");
  assert.equal(pod({}, {}, { deletionTimestamp: "2026-01-01T00:00:00Z" })["Status"], "Terminating");
  assert.equal(
    pod({ phase: "Succeeded" }, {}, { deletionTimestamp: "2026-01-01T00:00:00Z" })["Status"],
    "Succeeded",
  );
  assert.equal(
    pod({ reason: "NodeLost" }, {}, { deletionTimestamp: "2026-01-01T00:00:00Z" })["Status"],
    "Unknown",
  );
  assert.equal(
    pod({ phase: "Pending", conditions: [{ type: "PodScheduled", reason: "SchedulingGated" }] })["Status"],
    "SchedulingGated",
  );
});

test("initialisation and restarts of a pod", () => {
  const init = { initContainers: [{ name: "i" }, { name: "j" }] };
  assert.equal(
    pod({ phase: "Pending", initContainerStatuses: [{ name: "i", state: { running: {} } }] }, init)["Status"],
    "Init:0/2",
  );
  assert.equal(
    pod(
      { initContainerStatuses: [{ name: "i", state: { terminated: { exitCode: 1, reason: "Error" } } }] },
      init,
    )["Status"],
    "Init:Error",
  );
  assert.equal(
    pod({ initContainerStatuses: [{ name: "i", state: { waiting: { reason: "ImagePullBackOff" } } }] }, init)[
      "Status"
    ],
    "Init:ImagePullBackOff",
  );
  const sidecar = { initContainers: [{ name: "s", restartPolicy: "Always" }] };
  const started = [{ name: "s", started: true, ready: true, state: { running: {} } }];
  assert.equal(
    pod({ initContainerStatuses: started, containerStatuses: [running, running] }, sidecar)["Ready"],
    "3/3",
  );
  const restarted = {
    ...running,
    restartCount: 2,
    lastState: { terminated: { finishedAt: "2025-12-31T23:55:00Z" } },
  };
  assert.equal(pod({ containerStatuses: [restarted, running] })["Restarts"], "2 (5m ago)");
});

test("workloads", () => {
  const spec = {
    replicas: 3,
    selector: {
      matchLabels: { b: "2", a: "1" },
      matchExpressions: [
        { key: "c", operator: "In", values: ["y", "x"] },
        { key: "d", operator: "DoesNotExist" },
      ],
    },
    template: {
      spec: {
        containers: [
          { name: "a", image: "i1" },
          { name: "b", image: "i2" },
        ],
      },
    },
  };
  assert.deepEqual(
    cells("apps/v1", "Deployment", {
      spec,
      status: { readyReplicas: 2, updatedReplicas: 3, availableReplicas: 1 },
    }),
    {
      Ready: "2/3",
      "Up-to-date": 3,
      Available: 1,
      Containers: "a,b",
      Images: "i1,i2",
      Selector: "a=1,b=2,c in (x,y),!d",
    },
  );
  const job = (status: JsonObject, more: JsonObject = { completions: 2 }): JsonObject =>
    cells("batch/v1", "Job", { spec: more, status });
  assert.deepEqual(job({ succeeded: 1, startTime: "2025-12-31T23:59:50Z" })["Duration"], "10s");
  assert.equal(job({ succeeded: 1 })["Completions"], "1/2");
  assert.equal(job({}, { parallelism: 3 })["Completions"], "0/1 of 3");
  assert.equal(job({ conditions: [{ type: "Complete", status: "True" }] })["Status"], "Complete");
  assert.equal(job({ conditions: [{ type: "Suspended", status: "True" }] })["Status"], "Suspended");
  assert.deepEqual(
    cells("batch/v1", "CronJob", {
      spec: { schedule: "@daily", suspend: true },
      status: { lastScheduleTime: "2025-12-31T23:00:00Z" },
    }),
    {
      Schedule: "@daily",
      Timezone: "<none>",
      Suspend: "True",
      Active: 0,
      "Last Schedule": "60m",
      Containers: "",
      Images: "",
      Selector: "<none>",
    },
  );
});

test("services and endpoints", () => {
  const service = (spec: JsonObject, status: JsonObject = {}): JsonObject =>
    cells("v1", "Service", { spec, status });
  assert.deepEqual(
    service({
      type: "NodePort",
      clusterIP: "10.0.0.1",
      clusterIPs: ["10.0.0.1"],
      ports: [
        { port: 80, nodePort: 30_001, protocol: "TCP" },
        { port: 53, protocol: "UDP" },
      ],
      selector: { a: "b" },
    }),
    {
      Type: "NodePort",
      "Cluster-IP": "10.0.0.1",
      "External-IP": "<none>",
      "Port(s)": "80:30001/TCP,53/UDP",
      Selector: "a=b",
    },
  );
  assert.equal(service({ type: "LoadBalancer" })["External-IP"], "<pending>");
  assert.equal(
    service({ type: "LoadBalancer" }, { loadBalancer: { ingress: [{ hostname: "z" }, { ip: "1.2.3.4" }] } })[
      "External-IP"
    ],
    "1.2.3.4,z",
  );
  assert.equal(service({ type: "ExternalName", externalName: "a.b" })["External-IP"], "a.b");
  const addresses = [1, 2, 3, 4].map((last) => ({ ip: `10.0.0.${last}` }));
  assert.equal(
    cells("v1", "Endpoints", { subsets: [{ addresses, ports: [{ port: 80 }] }] })["Endpoints"],
    "10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 1 more...",
  );
  assert.equal(cells("v1", "Endpoints", {})["Endpoints"], "<none>");
  assert.deepEqual(
    cells("discovery.k8s.io/v1", "EndpointSlice", { addressType: "IPv4", endpoints: [], ports: [] }),
    { AddressType: "IPv4", Ports: "<unset>", Endpoints: "<unset>" },
  );
  assert.deepEqual(
    cells("networking.k8s.io/v1", "Ingress", {
      spec: { ingressClassName: "c", tls: [{}], rules: ["a", "b", "c", "d"].map((host) => ({ host })) },
    }),
    {
      Class: "c",
      Hosts: "a,b,c + 1 more...",
      Address: "",
      Ports: "80, 443",
    },
  );
});

test("nodes and events", () => {
  const labels = { "node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": "" };
  const node = cells("v1", "Node", {
    metadata: { name: "n", labels },
    spec: { unschedulable: true },
    status: {
      conditions: [{ type: "Ready", status: "True" }],
      addresses: [{ type: "InternalIP", address: "10.0.0.9" }],
      nodeInfo: { kubeletVersion: "v1.35.0" },
    },
  });
  assert.equal(node["Status"], "Ready,SchedulingDisabled");
  assert.equal(node["Roles"], "control-plane,worker");
  assert.equal(node["Internal-IP"], "10.0.0.9");
  assert.equal(node["OS-Image"], "<unknown>");
  const series = { count: 7, lastObservedTime: "2025-12-31T23:59:59.000000Z" };
  const event = {
    involvedObject: { kind: "Pod", name: "p" },
    eventTime: "2025-12-31T23:59:00.000000Z",
    series,
    reportingComponent: "c",
    message: " m ",
  };
  assert.deepEqual(cells("v1", "Event", { apiVersion: "v1", ...event }), {
    "Last Seen": "1s",
    Type: "",
    Reason: "",
    Object: "pod/p",
    Subobject: "",
    Source: "c",
    Message: "m",
    "First Seen": "60s",
    Count: 7,
  });
});

test("the rest", () => {
  assert.deepEqual(
    cells("v1", "ResourceQuota", {
      status: { hard: { "limits.cpu": "2", pods: "3", cpu: "1" }, used: { pods: "1" } },
    }),
    {
      Request: "cpu: 0/1, pods: 1/3",
      Limit: "limits.cpu: 0/2",
    },
  );
  const subjects = [
    { kind: "User", name: "u" },
    { kind: "Group", name: "g" },
    { kind: "ServiceAccount", namespace: "n", name: "s" },
  ];
  assert.deepEqual(
    cells("rbac.authorization.k8s.io/v1", "RoleBinding", { roleRef: { kind: "Role", name: "r" }, subjects }),
    {
      Role: "Role/r",
      Users: "u",
      Groups: "g",
      ServiceAccounts: "n/s",
    },
  );
  const conditions = [{ type: "Approved" }];
  assert.equal(
    cells("certificates.k8s.io/v1", "CertificateSigningRequest", {
      spec: { expirationSeconds: 3600 },
      status: { conditions, certificate: "eA==" },
    })["Condition"],
    "Approved,Issued",
  );
  assert.equal(
    cells("v1", "PersistentVolumeClaim", { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } })[
      "Status"
    ],
    "Terminating",
  );
  const bound = {
    spec: { volumeName: "v", accessModes: ["ReadWriteMany"] },
    status: { phase: "Bound", accessModes: ["ReadWriteMany", "ReadWriteOnce"], capacity: { storage: "5Gi" } },
  };
  assert.deepEqual(cells("v1", "PersistentVolumeClaim", bound), {
    Status: "Bound",
    Volume: "v",
    Capacity: "5Gi",
    "Access Modes": "RWO,RWX",
    StorageClass: "",
    VolumeAttributesClass: "<unset>",
    VolumeMode: "<unset>",
  });
  const hpa = {
    apiVersion: "autoscaling/v2",
    spec: {
      scaleTargetRef: { kind: "Deployment", name: "d" },
      maxReplicas: 5,
      minReplicas: 2,
      metrics: [
        { type: "Resource", resource: { name: "cpu", target: { averageUtilization: 80 } } },
        { type: "Pods", pods: { target: { averageValue: "10" } } },
        { type: "External", external: { target: { value: "1" } } },
      ],
    },
    status: {
      currentReplicas: 3,
      currentMetrics: [{ type: "Resource", resource: { name: "cpu", current: { averageUtilization: 20 } } }],
    },
  };
  assert.deepEqual(cells("autoscaling/v2", "HorizontalPodAutoscaler", hpa), {
    Reference: "Deployment/d",
    Targets: "cpu: 20%/80%, <unknown>/10 + 1 more...",
    MinPods: "2",
    MaxPods: 5,
    Replicas: 3,
  });
  const conditionsOf = [{ type: "Available", status: "False", reason: "FailedDiscoveryCheck" }];
  assert.equal(
    cells("apiregistration.k8s.io/v1", "APIService", { status: { conditions: conditionsOf } })["Available"],
    "False (FailedDiscoveryCheck)",
  );
});

test("finished pods say so in their row", () => {
  const resource = resourceOf("v1", "Pod");
  assert.deepEqual(resource.rowConditions?.({ status: { phase: "Running" } }), []);
  assert.equal(resource.rowConditions?.({ status: { phase: "Succeeded" } })[0]?.["reason"], "Succeeded");
});

/**
 * The built-in kinds the simulated control plane reads and writes, with the fields it needs of them.
 *
 * Source: Kubernetes API reference, release 1.35. Fields that are not listed pass through untouched.
 */
import {
  podTemplate,
  resource,
  shape,
  type KubeObject,
  type PodTemplate,
  type Resource,
} from "@kontinuum/controller";
import type { JsonObject } from "@kontinuum/std";

const { boolean, kubeObject, list, map, number, optional, string, unknown } = shape;
const json = optional(map(unknown));

/** A label selector as workloads carry it. */
export interface WorkloadSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: JsonObject[];
}

const selector = shape.object<WorkloadSelector>({
  matchLabels: optional(map(string)),
  matchExpressions: optional(list(map(unknown))),
});

/** A condition of a built-in kind: `message` and times are optional there. */
export interface BuiltinCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
  lastUpdateTime?: string;
}

const builtinConditions = list(
  shape.object<BuiltinCondition>({
    type: string,
    status: string,
    reason: optional(string),
    message: optional(string),
    lastTransitionTime: optional(string),
    lastUpdateTime: optional(string),
  }),
);

/** A node. */
export interface Node extends KubeObject {
  spec?: { unschedulable?: boolean; taints?: { key: string; effect: string; value?: string }[] };
  status?: {
    conditions?: BuiltinCondition[];
    addresses?: { type: string; address: string }[];
    capacity?: JsonObject;
    allocatable?: JsonObject;
    nodeInfo?: JsonObject;
  };
}

/** `nodes`. */
export const nodes: Resource<Node> = resource<Node>({
  group: "",
  version: "v1",
  kind: "Node",
  plural: "nodes",
  namespaced: false,
  shape: shape.object<Node>({
    ...kubeObject,
    spec: optional(
      shape.object<NonNullable<Node["spec"]>>({
        unschedulable: optional(boolean),
        taints: optional(
          list(
            shape.object<{ key: string; effect: string; value?: string }>({
              key: string,
              effect: string,
              value: optional(string),
            }),
          ),
        ),
      }),
    ),
    status: optional(
      shape.object<NonNullable<Node["status"]>>({
        conditions: optional(builtinConditions),
        addresses: optional(
          list(shape.object<{ type: string; address: string }>({ type: string, address: string })),
        ),
        capacity: json,
        allocatable: json,
        nodeInfo: json,
      }),
    ),
  }),
});

/** A port of a container. */
export interface ContainerPort {
  name?: string;
  containerPort: number;
  protocol?: string;
}

/** Where a variable of a container comes from. */
export interface EnvVariable {
  name: string;
  value?: string;
  valueFrom?: JsonObject;
}

/** A container. */
export interface Container {
  name: string;
  image?: string;
  ports?: ContainerPort[];
  env?: EnvVariable[];
  envFrom?: JsonObject[];
  volumeMounts?: { name: string; mountPath: string; subPath?: string; readOnly?: boolean }[];
}

const container = shape.object<Container>({
  name: string,
  image: optional(string),
  ports: optional(
    list(
      shape.object<ContainerPort>({
        name: optional(string),
        containerPort: number,
        protocol: optional(string),
      }),
    ),
  ),
  env: optional(list(shape.object<EnvVariable>({ name: string, value: optional(string), valueFrom: json }))),
  envFrom: optional(list(map(unknown))),
  volumeMounts: optional(
    list(
      shape.object<{ name: string; mountPath: string; subPath?: string; readOnly?: boolean }>({
        name: string,
        mountPath: string,
        subPath: optional(string),
        readOnly: optional(boolean),
      }),
    ),
  ),
});

/** A pod. */
export interface Pod extends KubeObject {
  spec: {
    nodeName?: string;
    hostname?: string;
    subdomain?: string;
    hostNetwork?: boolean;
    restartPolicy?: string;
    nodeSelector?: Record<string, string>;
    tolerations?: JsonObject[];
    containers: Container[];
    initContainers?: Container[];
    volumes?: JsonObject[];
  };
  status?: {
    phase?: string;
    podIP?: string;
    podIPs?: JsonObject[];
    hostIP?: string;
    hostIPs?: JsonObject[];
    qosClass?: string;
    startTime?: string;
    conditions?: BuiltinCondition[];
    containerStatuses?: JsonObject[];
    initContainerStatuses?: JsonObject[];
  };
}

/** `pods`. */
export const pods: Resource<Pod> = resource<Pod>({
  group: "",
  version: "v1",
  kind: "Pod",
  plural: "pods",
  shape: shape.object<Pod>({
    ...kubeObject,
    spec: shape.object<Pod["spec"]>({
      nodeName: optional(string),
      hostname: optional(string),
      subdomain: optional(string),
      hostNetwork: optional(boolean),
      restartPolicy: optional(string),
      nodeSelector: optional(map(string)),
      tolerations: optional(list(map(unknown))),
      containers: list(container),
      initContainers: optional(list(container)),
      volumes: optional(list(map(unknown))),
    }),
    status: optional(
      shape.object<NonNullable<Pod["status"]>>({
        phase: optional(string),
        podIP: optional(string),
        podIPs: optional(list(map(unknown))),
        hostIP: optional(string),
        hostIPs: optional(list(map(unknown))),
        qosClass: optional(string),
        startTime: optional(string),
        conditions: optional(builtinConditions),
        containerStatuses: optional(list(map(unknown))),
        initContainerStatuses: optional(list(map(unknown))),
      }),
    ),
  }),
});

/** A workload with a template: what Deployment, ReplicaSet, StatefulSet and DaemonSet have in common. */
export interface Workload extends KubeObject {
  spec: { replicas?: number; selector: WorkloadSelector; template: PodTemplate };
  status?: JsonObject;
}

function workload(kind: string, plural: string): Resource<Workload> {
  return resource<Workload>({
    group: "apps",
    version: "v1",
    kind,
    plural,
    shape: shape.object<Workload>({
      ...kubeObject,
      spec: shape.object<Workload["spec"]>({ replicas: optional(number), selector, template: podTemplate }),
      status: json,
    }),
  });
}

/** `deployments.apps`. */
export const deployments = workload("Deployment", "deployments");
/** `replicasets.apps`. */
export const replicaSets = workload("ReplicaSet", "replicasets");
/** `statefulsets.apps`. */
export const statefulSets = workload("StatefulSet", "statefulsets");
/** `daemonsets.apps`. */
export const daemonSets = workload("DaemonSet", "daemonsets");

/** A job. */
export interface Job extends KubeObject {
  spec: {
    parallelism?: number;
    completions?: number;
    backoffLimit?: number;
    suspend?: boolean;
    template: PodTemplate;
  };
  status?: {
    conditions?: BuiltinCondition[];
    succeeded?: number;
    failed?: number;
    active?: number;
    startTime?: string;
  };
}

/** `jobs.batch`. */
export const jobs: Resource<Job> = resource<Job>({
  group: "batch",
  version: "v1",
  kind: "Job",
  plural: "jobs",
  shape: shape.object<Job>({
    ...kubeObject,
    spec: shape.object<Job["spec"]>({
      parallelism: optional(number),
      completions: optional(number),
      backoffLimit: optional(number),
      suspend: optional(boolean),
      template: podTemplate,
    }),
    status: optional(
      shape.object<NonNullable<Job["status"]>>({
        conditions: optional(builtinConditions),
        succeeded: optional(number),
        failed: optional(number),
        active: optional(number),
        startTime: optional(string),
      }),
    ),
  }),
});

/** The endpoints of a service. */
export interface EndpointSlice extends KubeObject {
  addressType: string;
  endpoints: JsonObject[];
  ports?: { name?: string; port?: number; protocol?: string; appProtocol?: string }[];
}

/** `endpointslices.discovery.k8s.io`. */
export const endpointSlices: Resource<EndpointSlice> = resource<EndpointSlice>({
  group: "discovery.k8s.io",
  version: "v1",
  kind: "EndpointSlice",
  plural: "endpointslices",
  shape: shape.object<EndpointSlice>({
    ...kubeObject,
    addressType: string,
    endpoints: list(map(unknown)),
    ports: optional(
      list(
        shape.object<NonNullable<EndpointSlice["ports"]>[number]>({
          name: optional(string),
          port: optional(number),
          protocol: optional(string),
          appProtocol: optional(string),
        }),
      ),
    ),
  }),
});

/** A custom kind that only a stand-in touches. */
export interface CustomObject extends KubeObject {
  spec?: JsonObject;
  status?: JsonObject;
}

/** A custom kind by its address. */
export function customKind(
  group: string,
  version: string,
  kind: string,
  plural: string,
): Resource<CustomObject> {
  return resource<CustomObject>({
    group,
    version,
    kind,
    plural,
    shape: shape.object<CustomObject>({ ...kubeObject, spec: json, status: json }),
  });
}

/**
 * EndpointSlices: the addresses behind each service that selects pods.
 */
import { isDeepStrictEqual } from "node:util";
import {
  defineController,
  isDeleting,
  matches,
  parseKey,
  services,
  setControllerReference,
  watchOf,
  type DefinedController,
  type Service,
  type ServicePort,
} from "@kontinuum/controller";
import type { JsonObject } from "@kontinuum/std";
import { endpointSlices, pods, type EndpointSlice, type Pod } from "./kinds.ts";
import { isReady } from "./pod-set.ts";

/** Endpoints in one slice (the API's limit is 1000). */
const sliceLimit = 1000;

/** See the module's comment. */
export function endpointSliceController(): DefinedController {
  return defineController({
    name: "endpoint-slice",
    watches: [
      watchOf(services),
      // Which services select a pod is only known by asking them all; the namespace is the key for that.
      watchOf(pods, {
        map: ({ metadata }) => [`${metadata.namespace}/*`],
        ignore: (before, after) => sameForServices(before, after),
      }),
    ],
    async reconcile(key, { client }) {
      const { namespace, name } = parseKey(key);
      const found =
        name === "*"
          ? (await client.list(services, { namespace })).items
          : [await client.find(services, { namespace, name })];
      const members = (await client.list(pods, { namespace })).items;
      for (const service of found) {
        const labels = service?.spec?.selector;
        if (!service || isDeleting(service) || !labels || Object.keys(labels).length === 0) continue;
        const selected = members.filter(
          (pod) =>
            matches({ matchLabels: labels }, pod.metadata.labels) && pod.status?.podIP && !isDeleting(pod),
        );
        const slice = makeSlice(service, selected.slice(0, sliceLimit));
        const present = await client.find(endpointSlices, slice.metadata);
        if (!present) await client.create(endpointSlices, slice);
        else if (!isDeepStrictEqual([present.endpoints, present.ports], [slice.endpoints, slice.ports])) {
          await client.update(endpointSlices, {
            ...present,
            endpoints: slice.endpoints,
            ports: slice.ports ?? [],
          });
        }
      }
    },
  });
}

function sameForServices(before: Pod, after: Pod): boolean {
  const relevant = (pod: Pod): unknown => [
    pod.metadata.labels,
    pod.status?.podIP,
    isReady(pod),
    isDeleting(pod),
  ];
  return isDeepStrictEqual(relevant(before), relevant(after));
}

function makeSlice(service: Service, selected: readonly Pod[]): EndpointSlice {
  const { name, namespace = "" } = service.metadata;
  const slice: EndpointSlice = {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: `${name}-simulated`,
      namespace,
      labels: {
        "kubernetes.io/service-name": name,
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
      },
    },
    addressType: "IPv4",
    endpoints: selected.map(endpoint),
    ports: (service.spec?.ports ?? []).map((port) => slicePort(port, selected[0])),
  };
  setControllerReference(slice, service, services);
  return slice;
}

function endpoint(pod: Pod): JsonObject {
  const ready = isReady(pod);
  return {
    addresses: [pod.status?.podIP ?? ""],
    conditions: { ready, serving: ready, terminating: false },
    nodeName: pod.spec.nodeName ?? "",
    targetRef: {
      kind: "Pod",
      name: pod.metadata.name,
      namespace: pod.metadata.namespace ?? "",
      uid: pod.metadata.uid ?? "",
    },
  };
}

function slicePort(port: ServicePort, pod: Pod | undefined): NonNullable<EndpointSlice["ports"]>[number] {
  const target = port.targetPort ?? port.port;
  const named = pod?.spec.containers.flatMap(({ ports = [] }) => ports).find(({ name }) => name === target);
  return {
    name: port.name ?? "",
    port: typeof target === "number" ? target : (named?.containerPort ?? port.port),
    protocol: port.protocol ?? "TCP",
    ...(port.appProtocol === undefined ? {} : { appProtocol: port.appProtocol }),
  };
}

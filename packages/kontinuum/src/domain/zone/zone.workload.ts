/**
 * The objects that run a zone's own server in its cluster. Pure.
 */
import { createHash } from "node:crypto";
import type { JsonObject } from "@kontinuum/std";
import {
  environmentName,
  identityMountPath,
  identitySecretName,
  systemNamespace,
  workloadName,
} from "../../kinds/index.ts";
import type { ZoneEnvironment } from "./zone.environment.ts";

const selector = { "app.kubernetes.io/name": workloadName };
const metadata = (name: string): JsonObject => ({
  name,
  namespace: systemNamespace,
  labels: { ...selector },
});

/** What the workload depends on. */
export interface WorkloadInput {
  readonly environment: ZoneEnvironment;
  /** With tag or digest. */
  readonly image: string;
  /** Whether the server is reachable at the pod's address (it is not while access is anonymous). */
  readonly probed: boolean;
}

/** Namespace, environment, Deployment and Service, in the order they are made. */
export function workloadObjects({ environment, image, probed }: WorkloadInput): JsonObject[] {
  return [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: systemNamespace } },
    {
      apiVersion: "v1",
      kind: "Secret",
      metadata: metadata(environmentName),
      type: "Opaque",
      data: Object.fromEntries(
        Object.entries(environment.secret).map(([key, value]) => [
          key,
          Buffer.from(value).toString("base64"),
        ]),
      ),
    },
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: metadata(environmentName),
      data: { ...environment.plain },
    },
    deployment(environment, image, probed),
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: metadata(workloadName),
      spec: {
        selector: { ...selector },
        ports: [{ name: "http", port: 80, targetPort: "http", protocol: "TCP" }],
      },
    },
  ];
}

function deployment(environment: ZoneEnvironment, image: string, probed: boolean): JsonObject {
  const digest = createHash("sha256").update(JSON.stringify(environment)).digest("hex");
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: metadata(workloadName),
    spec: {
      replicas: 1,
      selector: { matchLabels: { ...selector } },
      template: {
        // A changed environment reaches a running server only with a new pod.
        metadata: { labels: { ...selector }, annotations: { "kontinuum.sh/environment-digest": digest } },
        spec: {
          securityContext: {
            runAsNonRoot: true,
            runAsUser: 65532,
            runAsGroup: 65532,
            fsGroup: 65532,
            seccompProfile: { type: "RuntimeDefault" },
          },
          containers: [container(image, probed)],
          volumes: [
            { name: "tmp", emptyDir: {} },
            { name: "etcd-identity", secret: { secretName: identitySecretName } },
          ],
        },
      },
    },
  };
}

function container(image: string, probed: boolean): JsonObject {
  const probe = (path: string): JsonObject => ({ httpGet: { path, port: "http" }, periodSeconds: 10 });
  return {
    name: workloadName,
    image,
    imagePullPolicy: pullPolicy(image),
    ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }],
    envFrom: [{ secretRef: { name: environmentName } }, { configMapRef: { name: environmentName } }],
    ...(probed ? { readinessProbe: probe("/readyz"), livenessProbe: probe("/livez") } : {}),
    resources: { requests: { cpu: "50m", memory: "128Mi" }, limits: { memory: "1Gi" } },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    },
    volumeMounts: [
      { name: "tmp", mountPath: "/tmp" },
      { name: "etcd-identity", mountPath: identityMountPath, readOnly: true },
    ],
  };
}

/** `image` with the tag of this program, unless it names a tag or digest itself. */
export function zoneImage(image: string, version: string): string {
  const last = image.slice(image.lastIndexOf("/") + 1);
  return last.includes(":") || last.includes("@") ? image : `${image}:${version}`;
}

/** A release never changes, and a digest cannot; anything else (`dev`, `latest`) may. */
export function pullPolicy(image: string): "IfNotPresent" | "Always" {
  if (image.includes("@sha256:")) return "IfNotPresent";
  const tag = image.slice(image.lastIndexOf(":") + 1);
  return /^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/.test(tag) ? "IfNotPresent" : "Always";
}

/**
 * Defaults of pods and pod templates (Kubernetes API reference, "Pod v1"): what controllers and diffs expect
 * to find in every stored pod spec.
 */
import type { JsonObject } from "@kontinuum/std";
import { quantityNano } from "../quantity.ts";
import { child, ensure, entries, has, isTrue, items, number, setDefaults, text } from "../read.ts";

/** Fills the defaults of a template's metadata and spec. */
export function podTemplateDefaults(template: JsonObject | undefined): void {
  const spec = child(template, "spec");
  if (spec !== undefined) podSpecDefaults(spec);
}

/** Fills the defaults of a pod spec. */
function podSpecDefaults(spec: JsonObject): void {
  // The old name of the service account always says what the new one does.
  const account = text(spec, "serviceAccountName") || text(spec, "serviceAccount");
  if (account !== "") Object.assign(spec, { serviceAccountName: account, serviceAccount: account });
  setDefaults(spec, {
    restartPolicy: "Always",
    dnsPolicy: "ClusterFirst",
    schedulerName: "default-scheduler",
    terminationGracePeriodSeconds: 30,
    securityContext: {},
  });
  for (const key of ["containers", "initContainers", "ephemeralContainers"]) {
    for (const container of items(spec, key)) containerDefaults(container);
  }
  for (const volume of items(spec, "volumes")) volumeDefaults(volume);
}

/** Fills what only pods get, not templates. */
export function podDefaults(pod: JsonObject): void {
  const spec = child(pod, "spec");
  if (spec === undefined) return;
  podSpecDefaults(spec);
  setDefaults(spec, { enableServiceLinks: true });
  for (const container of [...items(spec, "containers"), ...items(spec, "initContainers")]) {
    requestsFromLimits(container);
    if (isTrue(spec, "hostNetwork")) {
      for (const port of items(container, "ports"))
        if (number(port, "hostPort") === 0) port.hostPort = port.containerPort;
    }
  }
}

function requestsFromLimits(container: JsonObject): void {
  const limits = entries(container, "resources", "limits");
  const resources = child(container, "resources");
  if (limits.length === 0 || resources === undefined) return;
  const requests = ensure(resources, "requests");
  for (const [name, limit] of limits) if (!Object.hasOwn(requests, name)) requests[name] = limit;
}

function containerDefaults(container: JsonObject): void {
  setDefaults(container, {
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
    imagePullPolicy: pullPolicy(text(container, "image")),
  });
  for (const port of items(container, "ports")) setDefaults(port, { protocol: "TCP" });
  for (const key of ["livenessProbe", "readinessProbe", "startupProbe"]) {
    const probe = child(container, key);
    if (probe !== undefined) probeDefaults(probe);
  }
  for (const hook of ["postStart", "preStop"]) httpDefaults(child(container, "lifecycle", hook));
  for (const variable of items(container, "env")) {
    const field = child(variable, "valueFrom", "fieldRef");
    if (field !== undefined) setDefaults(field, { apiVersion: "v1" });
    fileKeyDefaults(child(variable, "valueFrom", "fileKeyRef"));
  }
}

function fileKeyDefaults(reference: JsonObject | undefined): void {
  if (reference !== undefined && !has(reference, "optional")) reference.optional = false;
}

/** An image reference: host, path of lower-case parts, tag, digest (distribution reference grammar). */
const imageReference =
  /^(?:[A-Za-z0-9.-]+(?::\d+)?\/)?[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*(?::\w[\w.-]{0,127})?(?:@[A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]+)?$/;

/** `Always` for an image without a tag or with `latest`; a digest pins as well as a tag. */
export function pullPolicy(image: string): "Always" | "IfNotPresent" {
  if (!imageReference.test(image)) return "IfNotPresent";
  const name = image.slice(image.lastIndexOf("/") + 1);
  if (image === "" || name.includes("@")) return "IfNotPresent";
  const colon = name.indexOf(":");
  return colon < 0 || name.slice(colon + 1) === "latest" ? "Always" : "IfNotPresent";
}

function probeDefaults(probe: JsonObject): void {
  httpDefaults(probe);
  const grpc = child(probe, "grpc");
  if (grpc !== undefined && !has(grpc, "service")) grpc.service = "";
  for (const [key, value] of Object.entries({
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  })) {
    if (number(probe, key) === 0) probe[key] = value;
  }
}

function httpDefaults(handler: JsonObject | undefined): void {
  const http = child(handler, "httpGet");
  if (http !== undefined) setDefaults(http, { path: "/", scheme: "HTTP" });
}

function volumeDefaults(volume: JsonObject): void {
  const sources = Object.keys(volume).filter((key) => key !== "name");
  if (sources.length === 0) volume.emptyDir = {};
  for (const key of ["secret", "configMap", "downwardAPI", "projected"]) {
    const source = child(volume, key);
    if (source !== undefined && !has(source, "defaultMode")) source.defaultMode = 0o644;
    for (const item of items(source, "items")) fieldReferenceDefaults(item);
  }
  for (const source of items(volume, "projected", "sources")) {
    const token = child(source, "serviceAccountToken");
    if (token !== undefined && !has(token, "expirationSeconds")) token.expirationSeconds = 3600;
    for (const item of items(source, "downwardAPI", "items")) fieldReferenceDefaults(item);
  }
  const hostPath = child(volume, "hostPath");
  if (hostPath !== undefined && !has(hostPath, "type")) hostPath.type = "";
  const image = child(volume, "image");
  if (image !== undefined) setDefaults(image, { pullPolicy: pullPolicy(text(image, "reference")) });
  const claim = child(volume, "ephemeral", "volumeClaimTemplate", "spec");
  if (claim !== undefined) setDefaults(claim, { volumeMode: "Filesystem" });
  legacyVolumeDefaults(volume);
}

function fieldReferenceDefaults(item: JsonObject): void {
  const field = child(item, "fieldRef");
  if (field !== undefined) setDefaults(field, { apiVersion: "v1" });
}

/** Defaults of volume sources that pods and persistent volumes share. */
export function legacyVolumeDefaults(source: JsonObject): void {
  const iscsi = child(source, "iscsi");
  if (iscsi !== undefined) setDefaults(iscsi, { iscsiInterface: "default" });
  const rbd = child(source, "rbd");
  if (rbd !== undefined) setDefaults(rbd, { pool: "rbd", user: "admin", keyring: "/etc/ceph/keyring" });
  const disk = child(source, "azureDisk");
  if (disk !== undefined) {
    if (!has(disk, "readOnly")) disk.readOnly = false;
    setDefaults(disk, { cachingMode: "ReadWrite", fsType: "ext4", kind: "Shared" });
  }
  const scale = child(source, "scaleIO");
  if (scale !== undefined) setDefaults(scale, { storageMode: "ThinProvisioned", fsType: "xfs" });
}

/** The quality of service class of a pod (Kubernetes documentation, "Pod Quality of Service Classes"). */
export function qualityOfService(spec: JsonObject | undefined): string {
  let any = false;
  let guaranteed = true;
  for (const container of [...items(spec, "containers"), ...items(spec, "initContainers")]) {
    for (const name of ["cpu", "memory"]) {
      const limit = quantityNano(text(container, "resources", "limits", name)) ?? 0n;
      const request = quantityNano(text(container, "resources", "requests", name)) ?? 0n;
      if (limit !== 0n || request !== 0n) any = true;
      if (limit === 0n || (request !== 0n && request !== limit)) guaranteed = false;
    }
  }
  return !any ? "BestEffort" : guaranteed ? "Guaranteed" : "Burstable";
}

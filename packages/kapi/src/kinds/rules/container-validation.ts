/**
 * Checks of the containers of a pod spec.
 */
import { at, type JsonObject } from "@kontinuum/std";
import { duplicate, forbidden, invalid, notSupported, required } from "../../schema/field-error.ts";
import { quantityNano } from "../quantity.ts";
import { child, entries, has, isTrue, items, number, text, texts } from "../read.ts";
import {
  configKeyErrors,
  dnsName,
  exactlyOne,
  labelKey,
  nonNegative,
  nonNegativeQuantity,
  portNameErrors,
  portNumber,
  portReference,
  type Errors,
} from "./checks.ts";
import { checkFieldPath } from "./field-path.ts";

/** Checks containers and init containers. `volumes` are the names the pod declares. */
export function checkContainers(
  spec: JsonObject | undefined,
  volumes: ReadonlySet<string>,
  path: string,
  errors: Errors,
): void {
  const containers = items(spec, "containers");
  if (containers.length === 0) errors.push(required(`${path}.containers`));
  const names = new Set<string>();
  for (const key of ["initContainers", "containers"]) {
    for (const [index, container] of items(spec, key).entries()) {
      const here = `${path}.${key}[${index}]`;
      checkName(container, names, here, errors);
      checkContainer(container, volumes, isTrue(spec, "hostNetwork"), here, errors);
      if (key === "initContainers") checkInit(container, here, errors);
    }
  }
  hostPortConflicts(containers, `${path}.containers`, errors);
}

/** Checks ephemeral containers, which may not have ports, probes or resources. */
export function checkEphemeralContainers(
  spec: JsonObject | undefined,
  volumes: ReadonlySet<string>,
  path: string,
  errors: Errors,
): void {
  const names = new Set(
    [...items(spec, "containers"), ...items(spec, "initContainers")].map((item) => text(item, "name")),
  );
  for (const [index, container] of items(spec, "ephemeralContainers").entries()) {
    const here = `${path}.ephemeralContainers[${index}]`;
    checkName(container, names, here, errors);
    if (text(container, "image") === "") errors.push(required(`${here}.image`));
    for (const key of ["ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"]) {
      if (has(container, key))
        errors.push(forbidden(`${here}.${key}`, "cannot be set for an Ephemeral Container"));
    }
    checkMounts(container, volumes, here, errors);
  }
}

function checkName(container: JsonObject, names: Set<string>, path: string, errors: Errors): void {
  const name = text(container, "name");
  if (name === "") return;
  dnsName(name, "label", `${path}.name`, errors);
  if (names.has(name)) errors.push(duplicate(`${path}.name`, name));
  names.add(name);
}

function checkInit(container: JsonObject, path: string, errors: Errors): void {
  if (text(container, "restartPolicy") === "Always") return;
  for (const key of ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"]) {
    if (has(container, key)) {
      errors.push(
        forbidden(`${path}.${key}`, "may not be set for init containers without restartPolicy=Always"),
      );
    }
  }
}

function checkContainer(
  container: JsonObject,
  volumes: ReadonlySet<string>,
  hostNetwork: boolean,
  path: string,
  errors: Errors,
): void {
  const image = text(container, "image");
  if (image === "") errors.push(required(`${path}.image`));
  else if (image.trim() !== image) {
    errors.push(invalid(`${path}.image`, image, "must not have leading or trailing whitespace"));
  }
  checkPorts(container, hostNetwork, `${path}.ports`, errors);
  checkEnvironment(container, path, errors);
  checkMounts(container, volumes, path, errors);
  checkResources(child(container, "resources"), `${path}.resources`, errors);
  for (const key of ["livenessProbe", "readinessProbe", "startupProbe"]) {
    checkProbe(child(container, key), key, `${path}.${key}`, errors);
  }
  for (const hook of ["postStart", "preStop"]) {
    const handler = child(container, "lifecycle", hook);
    if (handler !== undefined)
      checkHandler(handler, ["exec", "httpGet", "tcpSocket", "sleep"], `${path}.lifecycle.${hook}`, errors);
  }
}

function checkPorts(container: JsonObject, hostNetwork: boolean, path: string, errors: Errors): void {
  const names = new Set<string>();
  for (const [index, port] of items(container, "ports").entries()) {
    const here = `${path}[${index}]`;
    const name = text(port, "name");
    if (name !== "") {
      for (const why of portNameErrors(name)) errors.push(invalid(`${here}.name`, name, why));
      if (names.has(name)) errors.push(duplicate(`${here}.name`, name));
      names.add(name);
    }
    const value = number(port, "containerPort");
    if (value === 0) errors.push(required(`${here}.containerPort`));
    else portNumber(value, `${here}.containerPort`, errors);
    const hostPort = number(port, "hostPort");
    if (hostPort !== 0) {
      portNumber(hostPort, `${here}.hostPort`, errors);
      if (hostNetwork && hostPort !== value) {
        errors.push(
          invalid(`${here}.hostPort`, hostPort, "must match `containerPort` when `hostNetwork` is true"),
        );
      }
    }
  }
}

function hostPortConflicts(containers: readonly JsonObject[], path: string, errors: Errors): void {
  const taken = new Set<string>();
  for (const [index, container] of containers.entries()) {
    for (const [portIndex, port] of items(container, "ports").entries()) {
      const hostPort = number(port, "hostPort");
      if (hostPort === 0) continue;
      const key = `${text(port, "protocol")}/${text(port, "hostIP")}/${hostPort}`;
      if (taken.has(key)) errors.push(duplicate(`${path}[${index}].ports[${portIndex}].hostPort`, key));
      taken.add(key);
    }
  }
}

const sources = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

function checkEnvironment(container: JsonObject, path: string, errors: Errors): void {
  for (const [index, variable] of items(container, "env").entries()) {
    const here = `${path}.env[${index}]`;
    const name = text(variable, "name");
    if (name !== "" && (!/^[ -~]+$/.test(name) || name.includes("="))) {
      errors.push(
        invalid(
          `${here}.name`,
          name,
          "a valid environment variable name must consist only of printable ASCII characters other than '='",
        ),
      );
    }
    const from = child(variable, "valueFrom");
    if (from === undefined) continue;
    const set = exactlyOne(from, sources);
    if (set.length === 0) {
      errors.push(
        invalid(
          `${here}.valueFrom`,
          "",
          `must specify one of: \`${sources.slice(0, -1).join("`, `")}\` or \`${sources.at(-1)}\``,
        ),
      );
    } else if (text(variable, "value") !== "") {
      errors.push(invalid(`${here}.valueFrom`, "", "may not be specified when `value` is not empty"));
    } else if (set.length > 1) {
      errors.push(invalid(`${here}.valueFrom`, "", "may not have more than one field specified at a time"));
    }
    const field = child(from, "fieldRef");
    if (field !== undefined)
      checkFieldPath(text(field, "fieldPath"), false, `${here}.valueFrom.fieldRef.fieldPath`, errors);
    const resource = text(from, "resourceFieldRef", "resource");
    if (resource !== "" && !resourceFields.test(resource)) {
      errors.push(notSupported(`${here}.valueFrom.resourceFieldRef.resource`, resource, resourceFieldNames));
    }
    for (const key of ["configMapKeyRef", "secretKeyRef"]) {
      const reference = child(from, key);
      if (reference !== undefined && text(reference, "name") === "") {
        errors.push(required(`${here}.valueFrom.${key}.name`));
      } else if (reference !== undefined) {
        dnsName(text(reference, "name"), "subdomain", `${here}.valueFrom.${key}.name`, errors);
      }
      const part = text(reference, "key");
      for (const why of part === "" ? [] : configKeyErrors(part))
        errors.push(invalid(`${here}.valueFrom.${key}.key`, part, why));
    }
  }
  for (const [index, from] of items(container, "envFrom").entries()) {
    const here = `${path}.envFrom[${index}]`;
    const set = exactlyOne(from, ["configMapRef", "secretRef"]);
    if (set.length === 0)
      errors.push(invalid(here, "", "must specify one of: `configMapRef` or `secretRef`"));
    else if (set.length > 1)
      errors.push(invalid(here, "", "may not have more than one field specified at a time"));
    for (const key of set) {
      const name = text(from, key, "name");
      if (name === "") errors.push(required(`${here}.${key}.name`));
      else dnsName(name, "subdomain", `${here}.${key}.name`, errors);
    }
  }
}

const resourceFieldNames = ["limits", "requests"].flatMap((kind) =>
  ["cpu", "ephemeral-storage", "memory"].map((name) => `${kind}.${name}`),
);
const resourceFields = /^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$/;

function checkMounts(
  container: JsonObject,
  volumes: ReadonlySet<string>,
  path: string,
  errors: Errors,
): void {
  const points = new Set<string>();
  for (const [index, mount] of items(container, "volumeMounts").entries()) {
    const here = `${path}.volumeMounts[${index}]`;
    const name = text(mount, "name");
    if (!volumes.has(name)) {
      errors.push({
        reason: "FieldValueNotFound",
        field: `${here}.name`,
        message: `Not found: ${JSON.stringify(name)}`,
      });
    }
    const point = text(mount, "mountPath");
    if (point !== "" && points.has(point)) errors.push(invalid(`${here}.mountPath`, point, "must be unique"));
    points.add(point);
    const sub = text(mount, "subPath") || text(mount, "subPathExpr");
    if (sub.startsWith("/")) errors.push(invalid(`${here}.subPath`, sub, "must be a relative path"));
    if (sub.split("/").includes("..")) errors.push(invalid(`${here}.subPath`, sub, "must not contain '..'"));
    if (text(mount, "subPath") !== "" && text(mount, "subPathExpr") !== "") {
      errors.push(
        invalid(
          `${here}.subPathExpr`,
          text(mount, "subPathExpr"),
          "subPathExpr and subPath are mutually exclusive",
        ),
      );
    }
  }
  for (const [index, device] of items(container, "volumeDevices").entries()) {
    const name = text(device, "name");
    if (name !== "" && !volumes.has(name)) {
      errors.push({
        reason: "FieldValueNotFound",
        field: `${path}.volumeDevices[${index}].name`,
        message: `Not found: ${JSON.stringify(name)}`,
      });
    }
  }
}

const standardResources = /^(cpu|memory|ephemeral-storage|hugepages-.+)$/;
const integerResources = /^(hugepages-|[^/]+\/)/;

/** Checks resource requirements: quantities, names, requests within limits. */
function checkResources(resources: JsonObject | undefined, path: string, errors: Errors): void {
  const limits = child(resources, "limits") ?? {};
  for (const key of ["limits", "requests"]) {
    for (const [name, amount] of entries(resources, key)) {
      const here = `${path}.${key}[${name}]`;
      if (!standardResources.test(name)) {
        labelKey(name, here, errors);
        if (!name.includes("/"))
          errors.push(invalid(here, name, "must be a standard resource for containers"));
      }
      nonNegativeQuantity(amount, here, errors);
      const nano = quantityNano(amount) ?? 0n;
      if (integerResources.test(name) && nano % 1_000_000_000n !== 0n) {
        errors.push(invalid(here, amount, "must be an integer"));
      }
      if (key !== "requests" || !Object.hasOwn(limits, name)) continue;
      const limit = quantityNano(limits[name]) ?? 0n;
      if (nano > limit) {
        errors.push(
          invalid(here, amount, `must be less than or equal to ${name} limit of ${String(limits[name])}`),
        );
      } else if (integerResources.test(name) && nano !== limit) {
        errors.push(invalid(here, amount, `must be equal to ${name} limit of ${String(limits[name])}`));
      }
    }
  }
}

function checkProbe(probe: JsonObject | undefined, kind: string, path: string, errors: Errors): void {
  if (probe === undefined) return;
  checkHandler(probe, ["exec", "httpGet", "tcpSocket", "grpc"], path, errors);
  for (const key of [
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
  ]) {
    nonNegative(probe, key, path, errors);
  }
  const threshold = number(probe, "successThreshold");
  if (kind !== "readinessProbe" && threshold !== 1 && threshold !== 0) {
    errors.push(invalid(`${path}.successThreshold`, threshold, "must be 1"));
  }
  if (has(probe, "terminationGracePeriodSeconds")) {
    const seconds = number(probe, "terminationGracePeriodSeconds");
    if (kind === "readinessProbe") {
      errors.push(
        invalid(`${path}.terminationGracePeriodSeconds`, seconds, "must not be set for readinessProbes"),
      );
    } else if (seconds <= 0) {
      errors.push(invalid(`${path}.terminationGracePeriodSeconds`, seconds, "must be greater than 0"));
    }
  }
}

function checkHandler(handler: JsonObject, kinds: readonly string[], path: string, errors: Errors): void {
  const set = exactlyOne(handler, kinds);
  if (set.length === 0) errors.push(required(path, "must specify a handler type"));
  for (const extra of set.slice(1)) {
    errors.push(forbidden(`${path}.${extra}`, "may not specify more than 1 handler type"));
  }
  if (has(handler, "exec") && texts(handler, "exec", "command").length === 0)
    errors.push(required(`${path}.exec.command`));
  for (const key of ["httpGet", "tcpSocket", "grpc"]) {
    if (has(handler, key)) portReference(at(handler, key, "port"), `${path}.${key}.port`, errors);
  }
  for (const header of items(handler, "httpGet", "httpHeaders")) {
    const name = text(header, "name");
    if (!/^[-A-Za-z0-9]+$/.test(name)) {
      errors.push(
        invalid(
          `${path}.httpGet.httpHeaders`,
          name,
          "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
        ),
      );
    }
  }
  const scheme = text(handler, "httpGet", "scheme");
  if (scheme !== "" && scheme !== "HTTP" && scheme !== "HTTPS") {
    errors.push(notSupported(`${path}.httpGet.scheme`, scheme, ["HTTP", "HTTPS"]));
  }
}

/**
 * Rules of device classes, claims and slices (dynamic resource allocation).
 */
import type { JsonObject } from "@kontinuum/std";
import { equalJson } from "../../json/json.ts";
import type { FieldError } from "../../resource.ts";
import { duplicate, invalid, required, tooLong } from "../../schema/field-error.ts";
import { child, has, items, number, setDefaults, text } from "../read.ts";
import { dnsName, immutable } from "./checks.ts";
import type { RuleTable } from "./kind-rules.ts";

function deviceRequestDefaults(spec: JsonObject | undefined): void {
  for (const request of items(spec, "devices", "requests")) {
    const exact = child(request, "exactly");
    for (const part of [...(exact === undefined ? [] : [exact]), ...items(request, "firstAvailable")]) {
      setDefaults(part, { allocationMode: "ExactCount" });
      if (part.allocationMode === "ExactCount" && number(part, "count") === 0) part.count = 1;
    }
  }
}

/** Checks what a claim asks for. */
function checkRequests(spec: JsonObject | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  for (const [index, request] of items(spec, "devices", "requests").entries()) {
    const here = `${path}.devices.requests[${index}]`;
    const name = text(request, "name");
    if (name !== "") dnsName(name, "label", `${here}.name`, errors);
    if (name !== "" && names.has(name)) errors.push(duplicate(here, name));
    names.add(name);
    const exact = child(request, "exactly");
    const alternatives = items(request, "firstAvailable");
    if ((exact === undefined) === (alternatives.length === 0)) {
      const why = "exactly one of `exactly` or `firstAvailable` is required";
      errors.push(exact === undefined ? required(here, why) : invalid(here, "", why));
    }
    for (const [part, where] of [
      ...(exact === undefined ? [] : [[exact, `${here}.exactly`] as const]),
      ...alternatives.map((item, i) => [item, `${here}.firstAvailable[${i}]`] as const),
    ]) {
      const device = text(part, "deviceClassName");
      if (device !== "") dnsName(device, "subdomain", `${where}.deviceClassName`, errors);
    }
  }
  return errors;
}

/** Where the devices of a slice are reachable: exactly one way is said. */
const reach = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"];

function checkSlice(object: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const spec = child(object, "spec");
  const pool = text(spec, "pool", "name");
  if (pool !== "") for (const part of pool.split("/")) dnsName(part, "subdomain", "spec.pool.name", errors);
  const count = number(spec, "pool", "resourceSliceCount");
  if (count <= 0) errors.push(invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"));
  const driver = text(spec, "driver");
  if (driver.length > 63) errors.push(tooLong("spec.driver", 63));
  if (driver !== "") dnsName(driver, "subdomain", "spec.driver", errors);
  if (has(spec, "nodeName")) {
    const node = text(spec, "nodeName");
    if (node === "")
      errors.push(invalid("spec.nodeName", node, "must be either unset or set to a non-empty string"));
    else dnsName(node, "subdomain", "spec.nodeName", errors);
  }
  const said = reach.filter((key) => has(spec, key) && spec?.[key] !== false && spec?.[key] !== "");
  const why = `exactly one of ${reach.map((key) => `\`${key}\``).join(", ")} is required`;
  if (said.length === 0) errors.push(required("spec", why));
  else if (said.length > 1) errors.push(invalid("spec", `{${said.join(", ")}}`, why));
  return errors;
}

/** Rules of devices. */
export const deviceRules: RuleTable = {
  "resource.k8s.io/v1/ResourceClaim": {
    statusKeeps: "metadata",
    defaults: (object) => deviceRequestDefaults(child(object, "spec")),
    validate: (object) => checkRequests(child(object, "spec"), "spec"),
    validateUpdate(object, old) {
      const errors: FieldError[] = [];
      immutable(object, old, ["spec"], equalJson, errors);
      return errors;
    },
  },
  "resource.k8s.io/v1/ResourceClaimTemplate": {
    defaults: (object) => deviceRequestDefaults(child(object, "spec", "spec")),
    validate: (object) => checkRequests(child(object, "spec", "spec"), "spec.spec"),
    validateUpdate(object, old) {
      const errors: FieldError[] = [];
      immutable(object, old, ["spec"], equalJson, errors);
      return errors;
    },
  },
  "resource.k8s.io/v1/ResourceSlice": { generation: true, validate: checkSlice },
  "resource.k8s.io/v1/DeviceClass": { generation: true },
};

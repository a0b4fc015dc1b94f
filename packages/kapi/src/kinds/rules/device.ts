/**
 * Rules of device classes, claims and slices (dynamic resource allocation).
 */
import type { JsonObject } from "@kontinuum/std";
import { equalJson } from "../../json/json.ts";
import type { FieldError } from "../../resource.ts";
import { child, items, number, setDefaults } from "../read.ts";
import { immutable } from "./checks.ts";
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

/** Rules of devices. */
export const deviceRules: RuleTable = {
  "resource.k8s.io/v1/ResourceClaim": {
    defaults: (object) => deviceRequestDefaults(child(object, "spec")),
    validateUpdate(object, old) {
      const errors: FieldError[] = [];
      immutable(object, old, ["spec"], equalJson, errors);
      return errors;
    },
  },
  "resource.k8s.io/v1/ResourceClaimTemplate": {
    defaults: (object) => deviceRequestDefaults(child(object, "spec", "spec")),
    validateUpdate(object, old) {
      const errors: FieldError[] = [];
      immutable(object, old, ["spec"], equalJson, errors);
      return errors;
    },
  },
  "resource.k8s.io/v1/ResourceSlice": { generation: true },
  "resource.k8s.io/v1/DeviceClass": { generation: true },
};

/**
 * Rules of pods and pod templates.
 */
import { at, type JsonObject } from "@kontinuum/std";
import { cloneJson, equalJson } from "../../json/json.ts";
import type { FieldError } from "../../resource.ts";
import { forbidden } from "../../schema/field-error.ts";
import { child, ensure, items, text } from "../read.ts";
import { labelMap, type Errors } from "./checks.ts";
import { podDefaults, podTemplateDefaults, qualityOfService } from "./pod-defaults.ts";
import { checkPodSpec } from "./pod-validation.ts";
import type { RuleTable } from "./kind-rules.ts";

/** A pod spec without what may change after creation. */
function fixedPart(pod: JsonObject): unknown {
  const {
    activeDeadlineSeconds: _deadline,
    tolerations: _tolerations,
    schedulingGates: _gates,
    ephemeralContainers: _ephemeral,
    terminationGracePeriodSeconds: _grace,
    ...spec
  } = child(pod, "spec") ?? {};
  const withoutImages = (key: string): unknown =>
    items(spec, key).map(({ image: _image, ...container }) => container);
  return {
    ...spec,
    containers: withoutImages("containers"),
    initContainers: withoutImages("initContainers"),
  };
}

const updatable =
  "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/** Warnings about deprecated parts of a pod spec. */
export function podSpecWarnings(spec: JsonObject | undefined, path: string): string[] {
  const found: string[] = [];
  for (const key of ["beta.kubernetes.io/os", "beta.kubernetes.io/arch"]) {
    if (at(spec, "nodeSelector", key) !== undefined) {
      found.push(
        `${path}.nodeSelector[${key}]: deprecated since v1.14; use "${key.replace("beta.", "")}" instead`,
      );
    }
  }
  if (
    text(spec, "serviceAccount") !== "" &&
    text(spec, "serviceAccount") !== text(spec, "serviceAccountName")
  ) {
    found.push(`${path}.serviceAccount: deprecated; use ${path}.serviceAccountName instead`);
  }
  for (const [index, volume] of items(spec, "volumes").entries()) {
    if (child(volume, "gitRepo") !== undefined) {
      found.push(`${path}.volumes[${index}].gitRepo: deprecated in v1.11`);
    }
    if (child(volume, "glusterfs") !== undefined) {
      found.push(
        `${path}.volumes[${index}].glusterfs: deprecated in v1.25, this feature will be completely removed in v1.26`,
      );
    }
  }
  const variables = items(spec, "containers").flatMap((container, index) =>
    items(container, "env").map((variable, position) => ({
      name: text(variable, "name"),
      container,
      index,
      position,
    })),
  );
  const seen = new Set<string>();
  for (const { name, index, position } of variables) {
    const key = `${index}/${name}`;
    if (seen.has(key)) {
      found.push(
        `${path}.containers[${index}].env[${position}]: hides previous definition of "${name}", which may be dropped when using apply`,
      );
    }
    seen.add(key);
  }
  return found;
}

/** Checks the labels and the spec of a pod template. */
export function checkTemplate(template: JsonObject | undefined, path: string, errors: Errors): void {
  labelMap(child(template, "metadata", "labels"), `${path}.labels`, errors);
  checkPodSpec(child(template, "spec"), `${path}.spec`, errors);
}

/** Rules of pods and pod templates. */
export const podRules: RuleTable = {
  "v1/Pod": {
    generation: true,
    defaults: podDefaults,
    prepareCreate(pod) {
      Object.assign(ensure(pod, "status"), {
        phase: "Pending",
        qosClass: qualityOfService(child(pod, "spec")),
      });
    },
    prepareSubresource(pod, old, { subresource }) {
      // The body of a binding is no pod: its handler changes the node's name and nothing else.
      if (subresource === "binding") return;
      // Ephemeral containers and sizes each have their own door; through it nothing else changes.
      const wanted = child(pod, "spec");
      const spec: JsonObject = cloneJson(child(old, "spec") ?? {});
      if (subresource === "ephemeralcontainers") {
        if (wanted?.ephemeralContainers !== undefined) spec.ephemeralContainers = wanted.ephemeralContainers;
      } else if (subresource === "resize") {
        for (const container of items(spec, "containers")) {
          const same = items(wanted, "containers").find(
            (item) => text(item, "name") === text(container, "name"),
          );
          if (same?.resources !== undefined) container.resources = same.resources;
        }
      }
      pod.spec = spec;
      pod.status = cloneJson(old.status);
    },
    validate(pod) {
      const errors: FieldError[] = [];
      checkPodSpec(child(pod, "spec"), "spec", errors);
      return errors;
    },
    validateUpdate(pod, old, { subresource }) {
      if (subresource !== "" || equalJson(fixedPart(pod), fixedPart(old))) return [];
      return [forbidden("spec", updatable)];
    },
    warnings: (pod) => podSpecWarnings(child(pod, "spec"), "spec"),
  },
  "v1/PodTemplate": {
    generation: true,
    defaults: (object) => podTemplateDefaults(child(object, "template")),
    validate(object) {
      const errors: FieldError[] = [];
      checkTemplate(child(object, "template"), "template", errors);
      return errors;
    },
  },
};

/**
 * When a deleting object may really go, and what its kind adds when deletion begins.
 */
import { at, isObject, type JsonObject } from "@kontinuum/std";
import type { ResourceDefinition } from "../resource.ts";
import { finalizersOf, metadataOf, metaText, setFinalizers } from "./metadata.ts";

/** Keeps a definition until its objects are gone. */
export const crdFinalizer = "customresourcecleanup.apiextensions.k8s.io";

function isKind(resource: ResourceDefinition, group: string, kind: string): boolean {
  return resource.group === group && resource.kind === kind;
}

/** Finalizers of a namespace's spec: they hold it like those of the metadata. */
export function namespaceFinalizers(object: JsonObject): readonly unknown[] {
  const value = at(object, "spec", "finalizers");
  return Array.isArray(value) ? value : [];
}

/** Whether a deleting object has nothing left that holds it. */
export function isRemovable(resource: ResourceDefinition, object: JsonObject): boolean {
  if (metaText(object, "deletionTimestamp") === "" || finalizersOf(object).length > 0) return false;
  if (isKind(resource, "", "Namespace") && namespaceFinalizers(object).length > 0) return false;
  const grace = metadataOf(object)["deletionGracePeriodSeconds"];
  return grace === undefined || grace === 0;
}

/** Seconds an object stays after a delete; more than 0 only for pods that a node runs. */
export function gracePeriod(
  resource: ResourceDefinition,
  object: JsonObject,
  asked: number | undefined,
): number {
  if (!isKind(resource, "", "Pod")) return 0;
  const node = at(object, "spec", "nodeName");
  const phase = at(object, "status", "phase");
  if (typeof node !== "string" || node === "" || phase === "Succeeded" || phase === "Failed") return 0;
  const own = at(object, "spec", "terminationGracePeriodSeconds");
  return Math.max(0, asked ?? (typeof own === "number" ? own : 30));
}

/** What a kind adds to an object whose deletion begins. */
export function beginDeletion(resource: ResourceDefinition, object: JsonObject, now: string): void {
  if (isKind(resource, "", "Namespace")) {
    const status = isObject(object["status"]) ? object["status"] : {};
    object["status"] = { ...status, phase: "Terminating" };
  }
  if (isKind(resource, "apiextensions.k8s.io", "CustomResourceDefinition")) {
    if (!finalizersOf(object).includes(crdFinalizer))
      setFinalizers(object, [...finalizersOf(object), crdFinalizer]);
    const status = isObject(object["status"]) ? object["status"] : {};
    const present = Array.isArray(status["conditions"]) ? status["conditions"] : [];
    object["status"] = {
      ...status,
      conditions: [
        ...present.filter((condition) => !isObject(condition) || condition["type"] !== "Terminating"),
        {
          type: "Terminating",
          status: "True",
          lastTransitionTime: now,
          reason: "InstanceDeletionPending",
          message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        },
      ],
    };
  }
}

/** Whether this object is held by its kind even without finalizers of the metadata. */
export function isHeld(resource: ResourceDefinition, object: JsonObject): boolean {
  return isKind(resource, "", "Namespace") && namespaceFinalizers(object).length > 0;
}

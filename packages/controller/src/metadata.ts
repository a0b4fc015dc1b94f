/**
 * Finalizers and owner references: the two parts of metadata that controllers write.
 *
 * These functions change the given object in place and return whether it changed; sending it is the
 * caller's business.
 *
 * Source: Kubernetes concepts ("Finalizers", "Owners and dependents").
 */
import { CodedError } from "@kontinuum/std";
import type { KubeObject, OwnerReference, Resource } from "./object.ts";
import { apiVersionOf, keyOf } from "./resource.ts";

/** Whether the object is being deleted. */
export function isDeleting(object: KubeObject): boolean {
  return object.metadata.deletionTimestamp !== undefined;
}

/** Whether the object carries a finalizer. */
export function hasFinalizer(object: KubeObject, name: string): boolean {
  return object.metadata.finalizers?.includes(name) ?? false;
}

/** Adds a finalizer. A deleting object takes none (the server would refuse it): then nothing changes. */
export function addFinalizer(object: KubeObject, name: string): boolean {
  if (hasFinalizer(object, name) || isDeleting(object)) return false;
  object.metadata.finalizers = [...(object.metadata.finalizers ?? []), name];
  return true;
}

/** Removes a finalizer. */
export function removeFinalizer(object: KubeObject, name: string): boolean {
  if (!hasFinalizer(object, name)) return false;
  object.metadata.finalizers = (object.metadata.finalizers ?? []).filter((other) => other !== name);
  return true;
}

/** The reference that names its controller, or `undefined`. */
export function controllerOf(object: KubeObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((owner) => owner.controller === true);
}

/** Whether `owner` (by uid) controls the object. */
export function isControlledBy(object: KubeObject, owner: KubeObject): boolean {
  return owner.metadata.uid !== undefined && controllerOf(object)?.uid === owner.metadata.uid;
}

/**
 * Makes `owner` the controller of `object`. Fails with `already_exists` when another object controls it,
 * with `invalid_argument` when the owner has no uid yet or lives in another namespace.
 */
export function setControllerReference<T extends KubeObject>(
  object: KubeObject,
  owner: T,
  ownerResource: Resource<T>,
): boolean {
  const present = controllerOf(object);
  if (present && present.uid !== owner.metadata.uid) {
    throw new CodedError(
      "already_exists",
      `${object.kind} ${keyOf(object)} is controlled by ${present.kind} ${present.name}; it can't have a second controller`,
    );
  }
  return setOwner(object, owner, ownerResource, { controller: true, blockOwnerDeletion: true });
}

/** Makes `owner` one of the owners of `object`, without control. Fails as {@link setControllerReference}. */
export function setOwnerReference<T extends KubeObject>(
  object: KubeObject,
  owner: T,
  ownerResource: Resource<T>,
): boolean {
  return setOwner(object, owner, ownerResource, {});
}

function setOwner<T extends KubeObject>(
  object: KubeObject,
  owner: T,
  ownerResource: Resource<T>,
  flags: Pick<OwnerReference, "controller" | "blockOwnerDeletion">,
): boolean {
  const { uid, name, namespace } = owner.metadata;
  if (!uid) {
    throw new CodedError(
      "invalid_argument",
      `${ownerResource.kind} ${name} has no uid: create it before it can own`,
    );
  }
  if (ownerResource.namespaced && namespace !== object.metadata.namespace) {
    throw new CodedError(
      "invalid_argument",
      `${ownerResource.kind} ${keyOf(owner)} can't own ${object.kind} ${keyOf(object)}: they are in different namespaces`,
    );
  }
  const owners = object.metadata.ownerReferences ?? [];
  const index = owners.findIndex((other) => other.uid === uid);
  const present = owners[index];
  const reference: OwnerReference = {
    ...present,
    apiVersion: apiVersionOf(ownerResource),
    kind: ownerResource.kind,
    name,
    uid,
    ...flags,
  };
  const same =
    present !== undefined &&
    present.apiVersion === reference.apiVersion &&
    present.controller === reference.controller &&
    present.blockOwnerDeletion === reference.blockOwnerDeletion;
  if (same) return false;
  object.metadata.ownerReferences = present ? owners.with(index, reference) : [...owners, reference];
  return true;
}

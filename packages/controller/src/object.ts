/**
 * What every Kubernetes-style object has, and how a kind of object is named on the wire.
 *
 * Source: Kubernetes API conventions (objects, metadata, conditions).
 */
import type { JsonObject } from "@kontinuum/std";

/** A reference from a dependent to its owner. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** Metadata of an object. The server fills what is optional here. */
export interface ObjectMeta {
  name: string;
  generateName?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  /** RFC 3339, UTC, whole seconds. */
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  managedFields?: JsonObject[];
}

/** Any object. Concrete kinds extend it with `spec` and `status`. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
}

/** A list as the server sends it. */
export interface KubeList<T extends KubeObject> {
  apiVersion: string;
  kind: string;
  metadata: { resourceVersion: string; continue?: string; remainingItemCount?: number };
  items: T[];
}

/** How a kind of object is addressed. */
export interface Resource<T extends KubeObject = KubeObject> {
  /** Empty string for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** Turns an unknown value from the wire into the kind; throws a `CodedError` when it is not one. */
  readonly parse: (value: unknown) => T;
}

/** One entry of `status.conditions` (Kubernetes API conventions, "Typical status properties"). */
export interface Condition {
  type: string;
  status: "True" | "False" | "Unknown";
  reason: string;
  message: string;
  lastTransitionTime: string;
  observedGeneration?: number;
}

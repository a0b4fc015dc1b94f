/**
 * A kind of ours as data: from one declaration come the CRD manifest, the `Resource` a client uses, and the
 * TypeScript type.
 *
 * All kinds share what the contract fixes for them: group `kontinuum.sh`, namespaced, a status subresource,
 * `spec` required at the root. A declaration adds its versions, columns and selectable fields.
 */
import { resource, shape, type KubeObject, type Resource } from "@kontinuum/controller";
import type { CrdManifest } from "@kontinuum/kapi";
import type { JsonObject } from "@kontinuum/std";
import { shapeOf, type Schema } from "./schema.ts";

/** The API group of every kind in this package. */
export const group = "kontinuum.sh";

/** An object with `spec` and, once somebody reported it, `status`. */
export interface Declared<Spec, Status> extends KubeObject {
  spec: Spec;
  status?: Status;
}

/** A column of `kubectl get`. */
export interface Column {
  readonly name: string;
  readonly type: "string" | "integer" | "boolean" | "date";
  /** JSONPath with a leading dot. */
  readonly jsonPath: string;
  readonly description?: string;
}

/** One version of a kind. */
export interface KindVersion<Spec, Status> {
  readonly name: string;
  readonly spec: Schema<Spec>;
  readonly status: Schema<Status>;
  readonly columns: readonly Column[];
  /** Paths with a leading dot that `--field-selector` may use. */
  readonly selectableFields?: readonly string[];
}

/** Names of a kind, and how its versions are converted. */
export interface KindNames {
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  /** What the kind is, for `kubectl explain`. */
  readonly description: string;
  /** Address of the conversion webhook that the definition names, for kinds whose versions differ in shape. */
  readonly conversionUrl?: string;
}

/** A kind: how to address it and how to install it. */
export interface Kind<Spec, Status> {
  readonly resource: Resource<Declared<Spec, Status>>;
  readonly crd: CrdManifest;
}

/**
 * Declares a kind. `version` is stored and is what {@link Kind.resource} speaks; `older` ones are served
 * beside it.
 */
export function defineKind<Spec, Status>(
  names: KindNames,
  version: KindVersion<Spec, Status>,
  older: readonly KindVersion<unknown, unknown>[] = [],
): Kind<Spec, Status> {
  return {
    resource: resource({
      group,
      version: version.name,
      kind: names.kind,
      plural: names.plural,
      shape: shape.object<Declared<Spec, Status>>({
        ...shape.kubeObject,
        spec: shapeOf(version.spec),
        status: shape.optional(shapeOf(version.status)),
      } as shape.FieldShapes<Declared<Spec, Status>>),
    }),
    crd: manifest(names, [
      ...older.map((old) => versionManifest(names, old, false)),
      versionManifest(names, version, true),
    ]),
  };
}

function manifest(names: KindNames, versions: readonly JsonObject[]): CrdManifest {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${names.plural}.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: {
        kind: names.kind,
        listKind: `${names.kind}List`,
        plural: names.plural,
        singular: names.singular,
      },
      versions,
      ...(names.conversionUrl === undefined
        ? {}
        : {
            conversion: {
              strategy: "Webhook",
              webhook: { clientConfig: { url: names.conversionUrl }, conversionReviewVersions: ["v1"] },
            },
          }),
    },
  };
}

function versionManifest(
  names: KindNames,
  version: KindVersion<unknown, unknown>,
  storage: boolean,
): JsonObject {
  return {
    name: version.name,
    served: true,
    storage,
    schema: {
      openAPIV3Schema: {
        description: names.description,
        type: "object",
        required: ["metadata", "spec"],
        properties: {
          apiVersion: { description: "Group and version of this representation.", type: "string" },
          kind: { description: "Kind of this object.", type: "string" },
          metadata: { type: "object" },
          spec: version.spec.json,
          status: version.status.json,
        },
      },
    },
    subresources: { status: {} },
    additionalPrinterColumns: version.columns.map((column) => ({ ...column })),
    ...(version.selectableFields
      ? { selectableFields: version.selectableFields.map((jsonPath) => ({ jsonPath })) }
      : {}),
  };
}

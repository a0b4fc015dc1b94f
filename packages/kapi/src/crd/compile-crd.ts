/**
 * A CustomResourceDefinition (apiextensions.k8s.io/v1) compiled into one {@link ResourceDefinition} per
 * served version.
 *
 * Pure: no I/O, the manifest is not changed. The manifest must have passed `validateCrd`; a schema that
 * cannot be used nevertheless is an error here, never a resource without checks.
 */
import { CodedError, isObject, stringAt, type JsonObject } from "@kontinuum/std";
import type { FieldError, ResourceDefinition, SubresourceDefinition, Verb } from "../resource.ts";
import { own } from "../schema/json-value.ts";
import { parseSchema } from "../schema/schema-node.ts";
import { resourceTypeNode } from "../schema/type-node.ts";
import { compileColumns } from "./columns.ts";
import { reviewVersionOf, webhookConverter, type ConversionCall } from "./conversion.ts";
import { CustomSchema } from "./custom-schema.ts";
import { customOpenApi } from "./open-api.ts";

const verbs: readonly Verb[] = [
  "delete",
  "deletecollection",
  "get",
  "list",
  "patch",
  "create",
  "update",
  "watch",
];
const subresourceVerbs: readonly Verb[] = ["get", "patch", "update"];

/** What a compiled definition needs of the outside to convert by webhook. */
export interface CrdConversion {
  readonly call: ConversionCall;
  /** A fresh UUID per review. */
  readonly newUid: () => string;
}

/** Names of a definition with the defaults the API fills in. */
export interface CrdNames {
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
}

function strings(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

/** The names in `spec.names`, defaulted. */
export function crdNames(manifest: JsonObject): CrdNames {
  const names = isObject(manifest["spec"]) ? own(manifest["spec"], "names") : undefined;
  const text = (key: string): string => stringAt(names, key) ?? "";
  const kind = text("kind");
  return {
    plural: text("plural"),
    singular: text("singular") || kind.toLowerCase(),
    kind,
    listKind: text("listKind") || `${kind}List`,
    shortNames: strings(isObject(names) ? own(names, "shortNames") : undefined),
    categories: strings(isObject(names) ? own(names, "categories") : undefined),
  };
}

/** The version objects: `spec.versions`. */
export function crdVersions(manifest: JsonObject): readonly JsonObject[] {
  const versions = isObject(manifest["spec"]) ? own(manifest["spec"], "versions") : undefined;
  return Array.isArray(versions) ? versions.filter(isObject) : [];
}

const withoutDot = (path: string): string => (path.startsWith(".") ? path.slice(1) : path);

function subresourcesOf(version: JsonObject): readonly SubresourceDefinition[] {
  const declared = own(version, "subresources");
  if (!isObject(declared)) return [];
  const found: SubresourceDefinition[] = [];
  if (isObject(own(declared, "status"))) found.push({ name: "status", verbs: subresourceVerbs });
  const scale = own(declared, "scale");
  if (isObject(scale)) {
    const selector = stringAt(scale, "labelSelectorPath");
    found.push({
      name: "scale",
      kind: { group: "autoscaling", version: "v1", kind: "Scale" },
      verbs: subresourceVerbs,
      scale: {
        specReplicas: withoutDot(stringAt(scale, "specReplicasPath") ?? ""),
        statusReplicas: withoutDot(stringAt(scale, "statusReplicasPath") ?? ""),
        ...(selector === undefined || selector === "" ? {} : { selector: withoutDot(selector) }),
      },
    });
  }
  return found;
}

function selectableFieldsOf(version: JsonObject): readonly string[] {
  const declared = own(version, "selectableFields");
  if (!Array.isArray(declared)) return [];
  return declared
    .map((field: unknown) => withoutDot(stringAt(field, "jsonPath") ?? ""))
    .filter((path) => path !== "");
}

function compileVersion(
  manifest: JsonObject,
  version: JsonObject,
  index: number,
  convert: ResourceDefinition["convert"],
): ResourceDefinition {
  const names = crdNames(manifest);
  const group = stringAt(manifest, "spec", "group") ?? "";
  const name = stringAt(version, "name") ?? "";
  const errors: FieldError[] = [];
  const openAPIV3Schema = own(version, "schema");
  const raw = isObject(openAPIV3Schema) ? own(openAPIV3Schema, "openAPIV3Schema") : undefined;
  const schema = parseSchema(raw, `spec.versions[${index}].schema.openAPIV3Schema`, errors);
  const [first] = errors;
  if (!schema || first) {
    throw new CodedError(
      "invalid_argument",
      `CustomResourceDefinition ${names.plural}.${group} has an unusable schema: ${first?.field ?? ""}: ${first?.message ?? ""}`,
    );
  }
  const subresources = subresourcesOf(version);
  const hasStatus = subresources.some((sub) => sub.name === "status");
  const custom = new CustomSchema(schema, hasStatus);
  const warning = stringAt(version, "deprecationWarning") ?? `${group}/${name} ${names.kind} is deprecated`;
  const warnings = own(version, "deprecated") === true ? [warning] : [];
  const storage = crdVersions(manifest).find((v) => own(v, "storage") === true);
  return {
    group,
    version: name,
    ...names,
    namespaced: stringAt(manifest, "spec", "scope") !== "Cluster",
    verbs,
    subresources,
    origin: "custom",
    storageVersion: stringAt(storage, "name") ?? name,
    columns: compileColumns(own(version, "additionalPrinterColumns")),
    type: resourceTypeNode(schema),
    selectableFields: selectableFieldsOf(version),
    openapi: () => customOpenApi(group, name, names, schema),
    prune: (object) => custom.prune(object),
    applyDefaults: (object) => custom.applyDefaults(object),
    prepareForCreate: (object) => custom.prepareForCreate(object),
    prepareForUpdate: (object, old, context) => custom.prepareForUpdate(object, old, context),
    validateCreate: (object) => custom.validateCreate(object),
    validateUpdate: (object, old) => custom.validateUpdate(object, old),
    warnings: () => warnings,
    resetFields: hasStatus ? { status: ["status"] } : {},
    ...(convert ? { convert } : {}),
  };
}

/**
 * The resources of a definition, one per served version, in the manifest's order.
 *
 * `conversion` is used when the strategy is `Webhook`; with strategy `None` objects differ in their
 * apiVersion only and no `convert` is set.
 *
 * @throws CodedError `invalid_argument` when a schema cannot be used.
 */
export function compileCrd(manifest: JsonObject, conversion?: CrdConversion): readonly ResourceDefinition[] {
  const isWebhook = stringAt(manifest, "spec", "conversion", "strategy") === "Webhook";
  const convert =
    isWebhook && conversion
      ? webhookConverter(conversion.call, conversion.newUid, reviewVersionOf(manifest))
      : undefined;
  return crdVersions(manifest).flatMap((version, index) =>
    own(version, "served") === true ? compileVersion(manifest, version, index, convert) : [],
  );
}

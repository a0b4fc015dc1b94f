/**
 * Rules of PersistentVolumes, claims, StorageClasses and the CSI kinds.
 */
import { at, type JsonObject } from "@kontinuum/std";
import { cloneJson, equalJson, stringifyJson } from "../../json/json.ts";
import type { FieldError } from "../../resource.ts";
import { timestamp } from "../../registry/metadata.ts";
import { nameErrors } from "../../registry/names.ts";
import { duplicate, forbidden, invalid, notSupported, required, tooLong } from "../../schema/field-error.ts";
import { quantityNano } from "../quantity.ts";
import { child, ensure, entries, has, items, setDefaults, text, texts } from "../read.ts";
import { checkNodeTerm } from "./pod-validation.ts";
import { dnsName, immutable, labelKey, labelSelector, nonNegativeQuantity, type Errors } from "./checks.ts";
import { legacyVolumeDefaults } from "./pod-defaults.ts";
import type { KindRules, RuleTable } from "./kind-rules.ts";

const modes = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

function checkAccessModes(spec: JsonObject | undefined, path: string, detail: string, errors: Errors): void {
  const given = texts(spec, "accessModes");
  if (given.length === 0) errors.push(required(`${path}.accessModes`, detail));
  for (const mode of given)
    if (!modes.includes(mode)) errors.push(notSupported(`${path}.accessModes`, mode, modes));
  if (given.includes("ReadWriteOncePod") && new Set(given).size > 1) {
    errors.push(forbidden(`${path}.accessModes`, "may not use ReadWriteOncePod with other access modes"));
  }
}

/** Checks the spec of a claim, also of one in a template. */
export function checkClaimSpec(spec: JsonObject | undefined, path: string, errors: Errors): void {
  checkAccessModes(spec, path, "at least 1 access mode is required", errors);
  labelSelector(child(spec, "selector"), `${path}.selector`, errors);
  const amount = at(spec, "resources", "requests", "storage");
  if (amount === undefined) errors.push(required(`${path}.resources[storage]`));
  else if ((quantityNano(amount) ?? 0n) <= 0n) {
    errors.push(invalid(`${path}.resources[storage]`, amount, "must be greater than zero"));
  }
  const storageClass = text(spec, "storageClassName");
  if (storageClass !== "") dnsName(storageClass, "subdomain", `${path}.storageClassName`, errors);
}

/** Checks the name of a CSI driver. */
function checkDriverName(name: string, path: string, errors: Errors): void {
  if (name.length > 63) errors.push(tooLong(path, 63));
  for (const why of nameErrors(name.toLowerCase(), "subdomain")) errors.push(invalid(path, name, why));
}

/** Keys of a volume spec that are not its source. */
const volumeFields = new Set([
  "capacity",
  "accessModes",
  "claimRef",
  "persistentVolumeReclaimPolicy",
  "storageClassName",
  "mountOptions",
  "volumeMode",
  "nodeAffinity",
  "volumeAttributesClassName",
]);

const sourceOf = (volume: JsonObject): Record<string, unknown> =>
  Object.fromEntries(entries(volume, "spec").filter(([key]) => !volumeFields.has(key)));

const volume: KindRules = {
  defaults(object) {
    const spec = ensure(object, "spec");
    setDefaults(spec, { persistentVolumeReclaimPolicy: "Retain", volumeMode: "Filesystem" });
    setDefaults(ensure(object, "status"), { phase: "Pending" });
    const hostPath = child(spec, "hostPath");
    if (hostPath !== undefined && !has(hostPath, "type")) hostPath.type = "";
    legacyVolumeDefaults(spec);
  },
  prepareCreate(object, { now }) {
    object.status = { phase: "Pending", lastPhaseTransitionTime: timestamp(now) };
  },
  validate(object) {
    const errors: FieldError[] = [];
    const spec = child(object, "spec");
    checkAccessModes(spec, "spec", "", errors);
    const capacity = entries(spec, "capacity");
    if (capacity.length === 0) errors.push(required("spec.capacity"));
    for (const [name, amount] of capacity) {
      if (name !== "storage") {
        errors.push({
          reason: "FieldValueNotSupported",
          field: "spec.capacity",
          message: `Unsupported value: ${JSON.stringify(name)}: supported values: "storage"`,
        });
      }
      if ((quantityNano(amount) ?? 0n) <= 0n)
        errors.push(invalid(`spec.capacity[${name}]`, amount, "must be greater than zero"));
    }
    const sources = Object.keys(sourceOf(object));
    if (sources.length === 0) errors.push(required("spec", "must specify a volume type"));
    for (const extra of sources.slice(1))
      errors.push(forbidden(`spec.${extra}`, "may not specify more than 1 volume type"));
    const driver = text(spec, "csi", "driver");
    if (driver !== "") checkDriverName(driver, "spec.csi.driver", errors);
    const class_ = text(spec, "storageClassName");
    if (class_ !== "") dnsName(class_, "subdomain", "spec.storageClassName", errors);
    if (has(spec, "local") && !has(spec, "nodeAffinity")) {
      errors.push(required("spec.nodeAffinity", "Local volume requires node affinity"));
    }
    const affinity = child(spec, "nodeAffinity");
    if (affinity !== undefined && !has(affinity, "required")) {
      errors.push(required("spec.nodeAffinity.required", "must specify required node constraints"));
    } else if (affinity !== undefined && items(affinity, "required", "nodeSelectorTerms").length === 0) {
      errors.push(
        required("spec.nodeAffinity.required.nodeSelectorTerms", "must have at least one node selector term"),
      );
    }
    for (const [index, term] of items(spec, "nodeAffinity", "required", "nodeSelectorTerms").entries()) {
      checkNodeTerm(term, `spec.nodeAffinity.required.nodeSelectorTerms[${index}]`, errors);
    }
    if (text(spec, "hostPath", "path") === "/" && text(spec, "persistentVolumeReclaimPolicy") === "Recycle") {
      errors.push(
        forbidden("spec.persistentVolumeReclaimPolicy", "may not be 'recycle' for a hostPath mount of '/'"),
      );
    }
    return errors;
  },
  validateUpdate(object, old) {
    const errors: FieldError[] = [];
    if (!equalJson(sourceOf(object), sourceOf(old))) {
      errors.push(
        forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation"),
      );
    }
    immutable(object, old, ["spec", "volumeMode"], equalJson, errors);
    if (has(old, "spec", "nodeAffinity")) immutable(object, old, ["spec", "nodeAffinity"], equalJson, errors);
    return errors;
  },
};

/** What of a claim may change: the request may grow, and the volume be bound. */
const fixedClaim = (object: JsonObject): unknown => {
  const {
    resources: _resources,
    volumeName: _volumeName,
    volumeAttributesClassName: _attributes,
    ...spec
  } = child(object, "spec") ?? {};
  return spec;
};

const claim: KindRules = {
  defaults(object) {
    setDefaults(ensure(object, "spec"), { volumeMode: "Filesystem" });
    setDefaults(ensure(object, "status"), { phase: "Pending" });
    const spec = ensure(object, "spec");
    mirrorDataSource(spec);
  },
  prepareCreate(object) {
    object.status = { phase: "Pending" };
  },
  validate(object) {
    const errors: FieldError[] = [];
    checkClaimSpec(child(object, "spec"), "spec", errors);
    return errors;
  },
  validateUpdate(object, old) {
    const errors: FieldError[] = [];
    const bound = text(old, "spec", "volumeName") !== "";
    const moved = bound && text(object, "spec", "volumeName") !== text(old, "spec", "volumeName");
    if (moved || !equalJson(fixedClaim(object), fixedClaim(old))) {
      errors.push(
        forbidden(
          "spec",
          "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        ),
      );
    }
    const wanted = quantityNano(at(object, "spec", "resources", "requests", "storage")) ?? 0n;
    const had = quantityNano(at(old, "spec", "resources", "requests", "storage")) ?? 0n;
    const allocated = quantityNano(at(old, "status", "capacity", "storage")) ?? had;
    if (wanted < had && wanted <= allocated) {
      errors.push(forbidden("spec.resources.requests.storage", "field can not be less than status.capacity"));
    }
    if (wanted !== had && text(old, "status", "phase") !== "Bound") {
      errors.push(
        forbidden(
          "spec",
          "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        ),
      );
    }
    return errors.filter(
      (error, index) => errors.findIndex((other) => other.field === error.field) === index,
    );
  },
};

/** The two forms of a data source say the same when one of them is enough. */
function mirrorDataSource(spec: JsonObject): void {
  if (has(spec, "dataSource") && !has(spec, "dataSourceRef")) spec.dataSourceRef = cloneJson(spec.dataSource);
  else if (
    has(spec, "dataSourceRef") &&
    !has(spec, "dataSource") &&
    !has(spec, "dataSourceRef", "namespace")
  ) {
    const { namespace: _namespace, ...source } = child(spec, "dataSourceRef") ?? {};
    spec.dataSource = source;
  }
}

const storageClass: KindRules = {
  defaults: (object) => setDefaults(object, { reclaimPolicy: "Delete", volumeBindingMode: "Immediate" }),
  validate(object) {
    const errors: FieldError[] = [];
    const parameters = entries(object, "parameters");
    if (parameters.length > 512)
      errors.push({
        reason: "FieldValueTooLong",
        field: "parameters",
        message: "Too long: may not be more than 512 bytes",
      });
    const provisioner = text(object, "provisioner");
    if (provisioner !== "") labelKey(provisioner.toLowerCase(), "provisioner", errors);
    const topologies = new Set<string>();
    for (const [index, term] of items(object, "allowedTopologies").entries()) {
      const listed = new Map(
        items(term, "matchLabelExpressions").map((expression) => [
          text(expression, "key"),
          texts(expression, "values").toSorted(),
        ]),
      );
      const whole = stringifyJson([...listed].toSorted());
      if (listed.size === 0 || topologies.has(whole))
        errors.push(duplicate(`allowedTopologies[${index}].matchLabelExpressions`, ""));
      topologies.add(whole);
      const keys = new Set<string>();
      for (const [position, expression] of items(term, "matchLabelExpressions").entries()) {
        const here = `allowedTopologies[${index}].matchLabelExpressions[${position}]`;
        const [key, values] = [text(expression, "key"), texts(expression, "values")];
        labelKey(key, `${here}.key`, errors);
        if (keys.has(key)) errors.push(duplicate(`${here}.key`, key));
        keys.add(key);
        if (values.length === 0) errors.push(required(`${here}.values`));
        for (const [place, value] of values.entries())
          if (values.indexOf(value) < place) errors.push(duplicate(`${here}.values[${place}]`, value));
      }
    }
    const policy = text(object, "reclaimPolicy");
    if (policy === "Recycle") {
      errors.push({
        reason: "FieldValueNotSupported",
        field: "reclaimPolicy",
        message: 'Unsupported value: "Recycle": supported values: "Delete", "Retain"',
      });
    }
    return errors;
  },
  validateUpdate(object, old) {
    const errors: FieldError[] = [];
    for (const [key, why] of [
      ["parameters", "updates to parameters are forbidden."],
      ["provisioner", "updates to provisioner are forbidden."],
      ["reclaimPolicy", "updates to reclaimPolicy are forbidden."],
    ] as const) {
      if (!equalJson(object[key], old[key])) errors.push(forbidden(key, why));
    }
    immutable(object, old, ["volumeBindingMode"], equalJson, errors);
    return errors;
  },
};

/** Rules of storage kinds. */
export const volumeRules: RuleTable = {
  "v1/PersistentVolume": volume,
  "v1/PersistentVolumeClaim": claim,
  "storage.k8s.io/v1/StorageClass": storageClass,
  "storage.k8s.io/v1/VolumeAttributesClass": {
    validate(object) {
      const errors: FieldError[] = [];
      const driver = text(object, "driverName");
      if (driver !== "") labelKey(driver.toLowerCase(), "driverName", errors);
      if (entries(object, "parameters").length === 0)
        errors.push(required("parameters", "must contain at least one key/value pair"));
      return errors;
    },
    validateUpdate(object, old) {
      const errors: FieldError[] = [];
      for (const key of ["driverName", "parameters"]) {
        if (!equalJson(object[key], old[key]))
          errors.push(forbidden(key, "updates to " + key + " are forbidden."));
      }
      return errors;
    },
  },
  "storage.k8s.io/v1/CSIDriver": {
    defaults(object) {
      setDefaults(ensure(object, "spec"), {
        attachRequired: true,
        podInfoOnMount: false,
        storageCapacity: false,
        fsGroupPolicy: "ReadWriteOnceWithFSType",
        volumeLifecycleModes: ["Persistent"],
        requiresRepublish: false,
        seLinuxMount: false,
      });
    },
    validateUpdate(object, old) {
      const errors: FieldError[] = [];
      for (const key of ["attachRequired", "volumeLifecycleModes"])
        immutable(object, old, ["spec", key], equalJson, errors);
      return errors;
    },
  },
  "storage.k8s.io/v1/CSINode": {
    validate(object) {
      const errors: FieldError[] = [];
      const names = new Set<string>();
      for (const [index, driver] of items(object, "spec", "drivers").entries()) {
        const here = `spec.drivers[${index}].name`;
        const name = text(driver, "name");
        if (name !== "") checkDriverName(name, here, errors);
        if (names.has(name)) errors.push(duplicate(here, name));
        names.add(name);
      }
      return errors;
    },
  },
  "storage.k8s.io/v1/CSIStorageCapacity": {
    validate(object) {
      const errors: FieldError[] = [];
      const storageClass = text(object, "storageClassName");
      dnsName(storageClass, "subdomain", "storageClassName", errors);
      for (const key of ["capacity", "maximumVolumeSize"]) {
        if (has(object, key)) nonNegativeQuantity(object[key], key, errors);
      }
      return errors;
    },
    validateUpdate(object, old) {
      const errors: FieldError[] = [];
      for (const key of ["nodeTopology", "storageClassName"])
        immutable(object, old, [key], equalJson, errors);
      return errors;
    },
  },
  "storage.k8s.io/v1/VolumeAttachment": {
    statusKeeps: "metadata",
    validate(object) {
      const errors: FieldError[] = [];
      const attacher = text(object, "spec", "attacher");
      if (attacher !== "") checkDriverName(attacher, "spec.attacher", errors);
      for (const path of [["nodeName"], ["source", "persistentVolumeName"]]) {
        const name = text(object, "spec", ...path);
        if (name !== "") dnsName(name, "subdomain", ["spec", ...path].join("."), errors);
      }
      if (errors.length > 0) return errors;
      const source = child(object, "spec", "source");
      const named = text(source, "persistentVolumeName") !== "";
      const inline = has(source, "inlineVolumeSpec");
      if (!named && !inline) {
        return [required("spec.source", "must specify either inlineVolumeSpec and persistentVolumeName")];
      }
      return named && inline
        ? [forbidden("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName")]
        : [];
    },
    validateUpdate(object, old) {
      const errors: FieldError[] = [];
      immutable(object, old, ["spec"], equalJson, errors);
      return errors;
    },
  },
};

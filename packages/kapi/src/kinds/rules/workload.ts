/**
 * Rules of Deployments, ReplicaSets, StatefulSets, DaemonSets, ReplicationControllers and their revisions.
 */
import { at, type JsonObject } from "@kontinuum/std";
import { cloneJson, equalJson } from "../../json/json.ts";
import type { FieldError } from "../../resource.ts";
import { forbidden, invalid, notSupported, required } from "../../schema/field-error.ts";
import { child, ensure, entries, has, items, number, setDefaults, text } from "../read.ts";
import {
  amountOrPercent,
  dnsName,
  immutable,
  isEmptySelector,
  labelMap,
  labelSelector,
  nonNegative,
  notMoreThanHundred,
  selectorMatches,
  type Errors,
} from "./checks.ts";
import { podTemplateDefaults } from "./pod-defaults.ts";
import { checkClaimSpec } from "./volume.ts";
import { checkTemplate, podSpecWarnings } from "./pod.ts";
import type { KindRules, RuleTable } from "./kind-rules.ts";

const specOf = (object: JsonObject): JsonObject => ensure(object, "spec");
const templateOf = (object: JsonObject): JsonObject | undefined => child(object, "spec", "template");

/** The selector is there, is not empty and matches the template. */
function checkSelector(object: JsonObject, kind: string, errors: Errors): void {
  const selector = child(object, "spec", "selector");
  const labels = child(templateOf(object), "metadata", "labels");
  const mismatch = (): void => {
    errors.push(
      invalid("spec.template.metadata.labels", labels ?? {}, "`selector` does not match template `labels`"),
    );
  };
  if (selector === undefined) {
    if (kind === "daemonset") mismatch();
    else errors.push(required("spec.selector"));
  } else {
    const before = errors.length;
    labelSelector(selector, "spec.selector", errors);
    if (errors.length > before) {
      if (kind === "deployment") errors.push(invalid("spec.selector", selector, "invalid label selector"));
      return;
    }
    if (isEmptySelector(selector)) {
      errors.push(invalid("spec.selector", selector, `empty selector is invalid for ${kind}`));
    }
  }
  if (selector === undefined || isEmptySelector(selector)) return;
  if (!selectorMatches(selector, labels)) mismatch();
}

function checkRestart(object: JsonObject, errors: Errors): void {
  const policy = text(templateOf(object), "spec", "restartPolicy");
  if (policy !== "" && policy !== "Always") {
    errors.push(notSupported("spec.template.spec.restartPolicy", policy, ["Always"]));
  }
  if (has(templateOf(object), "spec", "activeDeadlineSeconds")) {
    errors.push(
      forbidden(
        "spec.template.spec.activeDeadlineSeconds",
        "activeDeadlineSeconds in ReplicaSet is not Supported",
      ),
    );
  }
}

function checkWorkload(object: JsonObject, kind: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const key of ["replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"]) {
    nonNegative(child(object, "spec"), key, "spec", errors);
  }
  checkSelector(object, kind, errors);
  checkTemplate(templateOf(object), "spec.template", errors);
  checkRestart(object, errors);
  return errors;
}

const fixedSelector = (object: JsonObject, old: JsonObject): FieldError[] => {
  const errors: FieldError[] = [];
  immutable(object, old, ["spec", "selector"], equalJson, errors);
  return errors;
};

const templateWarnings = (object: JsonObject): string[] =>
  podSpecWarnings(child(templateOf(object), "spec"), "spec.template.spec");

function deploymentDefaults(object: JsonObject): void {
  const spec = specOf(object);
  setDefaults(spec, { replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600 });
  const strategy = ensure(spec, "strategy");
  setDefaults(strategy, { type: "RollingUpdate" });
  if (strategy.type === "RollingUpdate") {
    setDefaults(ensure(strategy, "rollingUpdate"), { maxUnavailable: "25%", maxSurge: "25%" });
  }
  podTemplateDefaults(templateOf(object));
}

/** Both rolling update amounts, which may not both be zero. */
function checkRolling(rolling: JsonObject | undefined, path: string, errors: Errors): void {
  for (const key of ["maxUnavailable", "maxSurge"])
    amountOrPercent(at(rolling, key), `${path}.${key}`, errors);
  notMoreThanHundred(at(rolling, "maxUnavailable"), `${path}.maxUnavailable`, errors);
  const isZero = (value: unknown): boolean => value === 0 || value === "0%";
  if (isZero(at(rolling, "maxUnavailable")) && isZero(at(rolling, "maxSurge"))) {
    errors.push(
      invalid(`${path}.maxUnavailable`, at(rolling, "maxUnavailable"), "may not be 0 when `maxSurge` is 0"),
    );
  }
}

const deployment: KindRules = {
  statusKeeps: "labels",
  generation: true,
  defaults: deploymentDefaults,
  validate(object) {
    const errors = checkWorkload(object, "deployment");
    const strategy = child(object, "spec", "strategy");
    const rolling = child(strategy, "rollingUpdate");
    if (text(strategy, "type") === "Recreate" && rolling !== undefined) {
      errors.push(
        forbidden("spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'"),
      );
    } else checkRolling(rolling, "spec.strategy.rollingUpdate", errors);
    const deadline = number(object, "spec", "progressDeadlineSeconds");
    if (
      has(object, "spec", "progressDeadlineSeconds") &&
      deadline <= number(object, "spec", "minReadySeconds")
    ) {
      errors.push(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"));
    }
    return errors;
  },
  validateUpdate: fixedSelector,
  warnings: templateWarnings,
};

const replicaSet: KindRules = {
  generation: true,
  defaults(object) {
    setDefaults(specOf(object), { replicas: 1 });
    podTemplateDefaults(templateOf(object));
  },
  validate: (object) => checkWorkload(object, "deployment"),
  validateUpdate: fixedSelector,
  warnings: templateWarnings,
};

const statefulUpdatable = new Set([
  "replicas",
  "ordinals",
  "template",
  "updateStrategy",
  "revisionHistoryLimit",
  "persistentVolumeClaimRetentionPolicy",
  "minReadySeconds",
]);

const fixedSpec = (object: JsonObject): unknown =>
  Object.fromEntries(entries(object, "spec").filter(([key]) => !statefulUpdatable.has(key)));

function statefulSetDefaults(object: JsonObject): void {
  const spec = specOf(object);
  setDefaults(spec, { replicas: 1, podManagementPolicy: "OrderedReady", revisionHistoryLimit: 10 });
  const strategy = ensure(spec, "updateStrategy");
  setDefaults(strategy, { type: "RollingUpdate" });
  if (strategy.type === "RollingUpdate") setDefaults(ensure(strategy, "rollingUpdate"), { partition: 0 });
  setDefaults(ensure(spec, "persistentVolumeClaimRetentionPolicy"), {
    whenDeleted: "Retain",
    whenScaled: "Retain",
  });
  podTemplateDefaults(templateOf(object));
  for (const claim of items(spec, "volumeClaimTemplates")) {
    Object.assign(claim, { apiVersion: "v1", kind: "PersistentVolumeClaim" });
    setDefaults(ensure(claim, "spec"), { volumeMode: "Filesystem" });
    setDefaults(ensure(claim, "status"), { phase: "Pending" });
  }
}

const statefulSet: KindRules = {
  generation: true,
  defaults: statefulSetDefaults,
  validate(object) {
    // A claim template is a volume to the containers that mount it.
    const copy = cloneJson(object);
    const podSpec = child(copy, "spec", "template", "spec");
    const claims = items(copy, "spec", "volumeClaimTemplates").map((claim) => ({
      name: text(claim, "metadata", "name"),
      persistentVolumeClaim: { claimName: text(claim, "metadata", "name") },
    }));
    const distinct = claims.filter(
      ({ name }, index) => name !== "" && claims.findIndex((claim) => claim.name === name) === index,
    );
    if (podSpec !== undefined && distinct.length > 0) {
      const replaced = new Set(claims.map(({ name }) => name));
      podSpec.volumes = [
        ...items(podSpec, "volumes").filter((volume) => !replaced.has(text(volume, "name"))),
        ...distinct,
      ];
    }
    const errors = checkWorkload(copy, "statefulset");
    const service = text(object, "spec", "serviceName");
    if (service !== "") dnsName(service, "label", "spec.serviceName", errors);
    for (const [index, claim] of items(object, "spec", "volumeClaimTemplates").entries()) {
      checkClaimSpec(child(claim, "spec"), `spec.volumeClaimTemplates[${index}].spec`, errors);
    }
    const partition = child(object, "spec", "updateStrategy", "rollingUpdate");
    nonNegative(partition, "partition", "spec.updateStrategy.rollingUpdate", errors);
    if (text(object, "spec", "updateStrategy", "type") === "OnDelete" && partition !== undefined) {
      errors.push(
        invalid(
          "spec.updateStrategy.rollingUpdate",
          partition,
          "only allowed for updateStrategy 'RollingUpdate'",
        ),
      );
    }
    return errors;
  },
  validateUpdate(object, old) {
    if (equalJson(fixedSpec(object), fixedSpec(old))) return [];
    return [
      forbidden(
        "spec",
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
      ),
    ];
  },
  warnings: templateWarnings,
};

/** Where DaemonSets count the changes of their template. */
const templateGeneration = "deprecated.daemonset.template.generation";

function countTemplate(object: JsonObject, generation: number): void {
  ensure(ensure(object, "metadata"), "annotations")[templateGeneration] = String(generation);
}

const daemonSet: KindRules = {
  generation: true,
  prepareCreate: (object) => countTemplate(object, 1),
  prepareUpdate(object, old) {
    const before = Number(text(old, "metadata", "annotations", templateGeneration)) || 0;
    countTemplate(object, equalJson(templateOf(object), templateOf(old)) ? before : before + 1);
  },
  defaults(object) {
    const spec = specOf(object);
    setDefaults(spec, { revisionHistoryLimit: 10 });
    const strategy = ensure(spec, "updateStrategy");
    setDefaults(strategy, { type: "RollingUpdate" });
    if (strategy.type === "RollingUpdate") {
      setDefaults(ensure(strategy, "rollingUpdate"), { maxUnavailable: 1, maxSurge: 0 });
    }
    podTemplateDefaults(templateOf(object));
  },
  validate(object) {
    const errors = checkWorkload(object, "daemonset");
    if (text(object, "spec", "updateStrategy", "type") === "RollingUpdate") {
      const rolling = child(object, "spec", "updateStrategy", "rollingUpdate");
      if (rolling === undefined) errors.push(required("spec.updateStrategy.rollingUpdate"));
      else checkRolling(rolling, "spec.updateStrategy.rollingUpdate", errors);
    }
    return errors;
  },
  validateUpdate: fixedSelector,
  warnings: templateWarnings,
};

const replicationController: KindRules = {
  generation: true,
  defaults(object) {
    const spec = specOf(object);
    setDefaults(spec, { replicas: 1 });
    const labels = child(templateOf(object), "metadata", "labels");
    if (labels !== undefined) {
      const metadata = ensure(object, "metadata");
      if (entries(spec, "selector").length === 0) spec.selector = { ...labels };
      if (entries(metadata, "labels").length === 0) metadata.labels = { ...labels };
    }
    podTemplateDefaults(templateOf(object));
  },
  validate(object) {
    const errors: FieldError[] = [];
    const spec = child(object, "spec");
    nonNegative(spec, "replicas", "spec", errors);
    nonNegative(spec, "minReadySeconds", "spec", errors);
    const selector = child(spec, "selector");
    labelMap(selector, "spec.selector", errors);
    if (selector === undefined || Object.keys(selector).length === 0) errors.push(required("spec.selector"));
    const template = templateOf(object);
    if (template === undefined) errors.push(required("spec.template"));
    else {
      const labels = child(template, "metadata", "labels");
      if (!selectorMatches({ matchLabels: selector ?? {} }, labels)) {
        errors.push(
          invalid(
            "spec.template.metadata.labels",
            labels ?? {},
            "`selector` does not match template `labels`",
          ),
        );
      }
      checkTemplate(template, "spec.template", errors);
      checkRestart(object, errors);
    }
    return errors;
  },
  warnings: templateWarnings,
};

/** Rules of workloads. */
export const workloadRules: RuleTable = {
  "apps/v1/Deployment": deployment,
  "apps/v1/ReplicaSet": replicaSet,
  "apps/v1/StatefulSet": statefulSet,
  "apps/v1/DaemonSet": daemonSet,
  "v1/ReplicationController": replicationController,
  "apps/v1/ControllerRevision": {
    validate(object) {
      const errors: FieldError[] = [];
      nonNegative(object, "revision", "", errors);
      if (!has(object, "data")) errors.push(required("data", "data is mandatory"));
      return errors.map((error) => ({ ...error, field: error.field.replace(/^\./, "") }));
    },
    validateUpdate(object, old) {
      const errors: FieldError[] = [];
      immutable(object, old, ["data"], equalJson, errors);
      return errors;
    },
  },
};

/**
 * Rules of nodes and of what schedules and runs pods on them: priorities, runtimes, leases.
 */
import { equalJson, stringifyJson } from "../../json/json.ts";
import type { FieldError } from "../../resource.ts";
import { duplicate, forbidden, invalid, notSupported, required } from "../../schema/field-error.ts";
import { child, has, items, number, setDefaults, text, texts } from "../read.ts";
import { dnsName, immutable, labelKey, labelValues } from "./checks.ts";
import { cidrError, cidrFamily } from "./network-address.ts";
import type { KindRules, RuleTable } from "./kind-rules.ts";

const taintEffects = ["NoExecute", "NoSchedule", "PreferNoSchedule"];

const node: KindRules = {
  defaults(object) {
    // The single field and the list say the same; the single one leads.
    const spec = child(object, "spec");
    const [first, ...rest] = texts(spec, "podCIDRs");
    const single = text(spec, "podCIDR");
    if (spec === undefined) return;
    if (single !== "" && first !== single) spec.podCIDRs = first === undefined ? [single] : [single, ...rest];
    else if (single === "" && first !== undefined) spec.podCIDR = first;
  },
  validate(object) {
    const errors: FieldError[] = [];
    const pairs = new Set<string>();
    for (const [index, taint] of items(object, "spec", "taints").entries()) {
      const here = `spec.taints[${index}]`;
      const key = text(taint, "key");
      const effect = text(taint, "effect");
      if (key !== "") labelKey(key, `${here}.key`, errors);
      if (effect === "") errors.push(required(`${here}.effect`));
      else if (!taintEffects.includes(effect))
        errors.push(notSupported(`${here}.effect`, effect, taintEffects));
      labelValues([text(taint, "value")], `${here}.value`, errors);
      const pair = `${key}:${effect}`;
      if (pairs.has(pair))
        errors.push({
          ...duplicate(here, taint),
          message: `Duplicate value: ${stringifyJson(taint)}: taints must be unique by key and effect pair`,
        });
      pairs.add(pair);
    }
    const ranges = texts(object, "spec", "podCIDRs");
    const families = ranges.map((range) => cidrFamily(range)).filter((family) => family !== undefined);
    if (ranges.length > 2 || new Set(families).size < families.length)
      errors.push(invalid("spec.podCIDRs", ranges, "may specify no more than one CIDR for each IP family"));
    for (const [index, cidr] of ranges.entries()) {
      if (cidrFamily(cidr) === undefined) errors.push(invalid(`spec.podCIDRs[${index}]`, cidr, cidrError));
    }
    return errors;
  },
  validateUpdate(object, old) {
    const before = texts(old, "spec", "podCIDRs");
    const errors: FieldError[] = [];
    if (before.length > 0 && !equalJson(texts(object, "spec", "podCIDRs"), before)) {
      errors.push(forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'));
    }
    const id = text(old, "spec", "providerID");
    if (id !== "" && text(object, "spec", "providerID") !== id) {
      errors.push(
        forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'),
      );
    }
    return errors;
  },
};

const priorityClass: KindRules = {
  generation: true,
  defaults: (object) => setDefaults(object, { preemptionPolicy: "PreemptLowerPriority" }),
  validate(object) {
    const errors: FieldError[] = [];
    const name = text(object, "metadata", "name");
    const system = { "system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000 }[name];
    if (name.startsWith("system-") && system !== number(object, "value")) {
      errors.push(
        forbidden(
          "metadata.name",
          "priority class names with 'system-' prefix are reserved for system use only",
        ),
      );
    } else if (system === undefined && number(object, "value") > 1_000_000_000) {
      errors.push(forbidden("value", "maximum allowed value of a user defined priority is 1000000000"));
    }
    return errors;
  },
  validateUpdate(object, old) {
    const errors: FieldError[] = [];
    if (number(object, "value") !== number(old, "value"))
      errors.push(forbidden("value", "may not be changed in an update."));
    immutable(object, old, ["preemptionPolicy"], equalJson, errors);
    return errors;
  },
};

const lease: KindRules = {
  validate(object) {
    const errors: FieldError[] = [];
    const spec = child(object, "spec");
    if (has(spec, "leaseDurationSeconds") && number(spec, "leaseDurationSeconds") <= 0) {
      errors.push(
        invalid("spec.leaseDurationSeconds", number(spec, "leaseDurationSeconds"), "must be greater than 0"),
      );
    }
    if (has(spec, "leaseTransitions") && number(spec, "leaseTransitions") < 0) {
      errors.push(
        invalid(
          "spec.leaseTransitions",
          number(spec, "leaseTransitions"),
          "must be greater than or equal to 0",
        ),
      );
    }
    return errors;
  },
};

/** Rules of nodes and scheduling. */
export const nodeRules: RuleTable = {
  "v1/Node": node,
  "scheduling.k8s.io/v1/PriorityClass": priorityClass,
  "node.k8s.io/v1/RuntimeClass": {
    validate(object) {
      const errors: FieldError[] = [];
      const handler = text(object, "handler");
      if (handler !== "") dnsName(handler, "label", "handler", errors);
      return errors;
    },
    validateUpdate(object, old) {
      const errors: FieldError[] = [];
      immutable(object, old, ["handler"], equalJson, errors);
      return errors;
    },
  },
  "coordination.k8s.io/v1/Lease": lease,
};

/**
 * Rules of the kinds that govern the API server itself: flow control and aggregated APIs.
 */
import type { FieldError } from "../../resource.ts";
import { forbidden, invalid, required } from "../../schema/field-error.ts";
import { child, ensure, has, isTrue, number, setDefaults, text } from "../read.ts";
import { checkClientConfig } from "./admission.ts";
import { dnsName } from "./checks.ts";
import type { KindRules, RuleTable } from "./kind-rules.ts";

const flowSchema: KindRules = {
  generation: true,
  defaults(object) {
    const spec = ensure(object, "spec");
    if (number(spec, "matchingPrecedence") === 0) spec.matchingPrecedence = 1000;
  },
  validate(object) {
    const errors: FieldError[] = [];
    const precedence = number(object, "spec", "matchingPrecedence");
    if (precedence < 1 || precedence > 10_000) {
      errors.push(
        invalid(
          "spec.matchingPrecedence",
          precedence,
          precedence < 1 ? "must be a positive value" : "must not be greater than 10000",
        ),
      );
    }
    if (precedence === 1 && text(object, "metadata", "name") !== "exempt") {
      errors.push(
        invalid("spec.matchingPrecedence", 1, "only the schema named 'exempt' may have matchingPrecedence 1"),
      );
    }
    return errors;
  },
};

const priorityLevel: KindRules = {
  generation: true,
  defaults(object) {
    const limited = child(object, "spec", "limited");
    if (limited !== undefined) {
      setDefaults(limited, { nominalConcurrencyShares: 30, lendablePercent: 0 });
      const queuing = child(limited, "limitResponse", "queuing");
      if (queuing !== undefined) {
        for (const [key, value] of [
          ["queues", 64],
          ["handSize", 8],
          ["queueLengthLimit", 50],
        ] as const) {
          if (number(queuing, key) === 0) queuing[key] = value;
        }
      }
    }
    const exempt = child(object, "spec", "exempt");
    if (exempt !== undefined) setDefaults(exempt, { nominalConcurrencyShares: 0, lendablePercent: 0 });
  },
  validate(object) {
    const errors: FieldError[] = [];
    const type = text(object, "spec", "type");
    if (type === "Limited" && !has(object, "spec", "limited")) {
      errors.push(required("spec.limited", "must not be empty when type is Limited"));
    }
    if (type === "Exempt" && has(object, "spec", "limited")) {
      errors.push(forbidden("spec.limited", "must be nil if the type is not Limited"));
    }
    return errors;
  },
};

const apiService: KindRules = {
  defaults(object) {
    const service = child(object, "spec", "service");
    if (service !== undefined) setDefaults(service, { port: 443 });
  },
  validate(object) {
    const errors: FieldError[] = [];
    const spec = child(object, "spec");
    const [group, version] = [text(spec, "group"), text(spec, "version")];
    const name = `${version}.${group}`;
    if (text(object, "metadata", "name") !== name) {
      errors.push(
        invalid(
          "metadata.name",
          text(object, "metadata", "name"),
          `must be \`spec.version+"."+spec.group\`: "${name}"`,
        ),
      );
    }
    if (group !== "") dnsName(group, "subdomain", "spec.group", errors);
    if (version === "") errors.push(required("spec.version"));
    else dnsName(version, "dns1035", "spec.version", errors);
    for (const [key, most] of [
      ["groupPriorityMinimum", 20_000],
      ["versionPriority", 1000],
    ] as const) {
      const value = number(spec, key);
      if (value <= 0 || value > most)
        errors.push(invalid(`spec.${key}`, value, `must be positive and less than ${most}`));
    }
    const local = !has(spec, "service");
    if (local && (text(spec, "caBundle") !== "" || isTrue(spec, "insecureSkipTLSVerify"))) {
      errors.push(
        invalid("spec.caBundle", "<contents redacted>", "local APIServices may not have a caBundle"),
      );
    }
    if (!local) {
      for (const key of ["namespace", "name"])
        if (text(spec, "service", key) === "") errors.push(required(`spec.service.${key}`));
      checkClientConfig({ service: child(spec, "service") }, "spec", errors);
      if (isTrue(spec, "insecureSkipTLSVerify") && text(spec, "caBundle") !== "") {
        errors.push(invalid("spec.insecureSkipTLSVerify", true, "may not be true if caBundle is present"));
      }
    }
    return errors;
  },
};

/** Rules of flow control and aggregation. */
export const apiMachineryRules: RuleTable = {
  "flowcontrol.apiserver.k8s.io/v1/FlowSchema": flowSchema,
  "flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration": priorityLevel,
  "apiregistration.k8s.io/v1/APIService": apiService,
};

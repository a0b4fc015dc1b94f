/**
 * Rules of Roles and bindings.
 */
import type { JsonObject } from "@kontinuum/std";
import { equalJson } from "../../json/json.ts";
import type { FieldError } from "../../resource.ts";
import { invalid, notSupported, required } from "../../schema/field-error.ts";
import { child, items, setEmptyDefaults, text, texts } from "../read.ts";
import { dnsName, labelSelector, type Errors } from "./checks.ts";
import type { KindRules, RuleTable } from "./kind-rules.ts";

const group = "rbac.authorization.k8s.io";

function checkRules(object: JsonObject, namespaced: boolean, errors: Errors): void {
  for (const [index, rule] of items(object, "rules").entries()) {
    const here = `rules[${index}]`;
    const urls = texts(rule, "nonResourceURLs");
    if (texts(rule, "verbs").length === 0) {
      errors.push(required(`${here}.verbs`, "verbs must contain at least one value"));
    }
    if (urls.length > 0) {
      if (namespaced) {
        errors.push(
          invalid(`${here}.nonResourceURLs`, urls, "namespaced rules cannot apply to non-resource URLs"),
        );
      }
      if (
        texts(rule, "apiGroups").length > 0 ||
        texts(rule, "resources").length > 0 ||
        texts(rule, "resourceNames").length > 0
      ) {
        errors.push(
          invalid(
            `${here}.nonResourceURLs`,
            urls,
            "rules cannot apply to both regular resources and non-resource URLs",
          ),
        );
      }
      continue;
    }
    if (texts(rule, "apiGroups").length === 0) {
      errors.push(required(`${here}.apiGroups`, "resource rules must supply at least one api group"));
    }
    if (texts(rule, "resources").length === 0) {
      errors.push(required(`${here}.resources`, "resource rules must supply at least one resource"));
    }
  }
}

function checkSubjects(object: JsonObject, namespaced: boolean, errors: Errors): void {
  for (const [index, subject] of items(object, "subjects").entries()) {
    const here = `subjects[${index}]`;
    const kind = text(subject, "kind");
    const apiGroup = text(subject, "apiGroup");
    const name = text(subject, "name");
    if (kind === "ServiceAccount") {
      if (name !== "") dnsName(name, "subdomain", `${here}.name`, errors);
      if (apiGroup !== "") errors.push(notSupported(`${here}.apiGroup`, apiGroup, [""]));
      if (!namespaced && text(subject, "namespace") === "") errors.push(required(`${here}.namespace`));
    } else if (kind === "User" || kind === "Group") {
      if (apiGroup !== group) errors.push(notSupported(`${here}.apiGroup`, apiGroup, [group]));
    } else errors.push(notSupported(`${here}.kind`, kind, ["ServiceAccount", "User", "Group"]));
  }
}

const role = (namespaced: boolean): KindRules => ({
  validate(object) {
    const errors: FieldError[] = [];
    checkRules(object, namespaced, errors);
    for (const [index, selector] of items(object, "aggregationRule", "clusterRoleSelectors").entries()) {
      labelSelector(selector, `aggregationRule.clusterRoleSelectors[${index}]`, errors);
    }
    const aggregation = child(object, "aggregationRule");
    if (aggregation !== undefined && items(aggregation, "clusterRoleSelectors").length === 0) {
      errors.push(
        required(
          "aggregationRule.clusterRoleSelectors",
          "at least one clusterRoleSelector required if aggregationRule is non-nil",
        ),
      );
    }
    return errors;
  },
});

const binding = (namespaced: boolean): KindRules => ({
  defaults(object) {
    const reference = child(object, "roleRef");
    if (reference !== undefined) setEmptyDefaults(reference, { apiGroup: group });
    for (const subject of items(object, "subjects")) {
      const kind = text(subject, "kind");
      if (kind === "User" || kind === "Group") setEmptyDefaults(subject, { apiGroup: group });
    }
  },
  validate(object) {
    const errors: FieldError[] = [];
    const reference = child(object, "roleRef");
    const apiGroup = text(reference, "apiGroup");
    if (apiGroup !== "" && apiGroup !== group)
      errors.push(notSupported("roleRef.apiGroup", apiGroup, [group]));
    const kinds = namespaced ? ["Role", "ClusterRole"] : ["ClusterRole"];
    const kind = text(reference, "kind");
    if (!kinds.includes(kind)) errors.push(notSupported("roleRef.kind", kind, kinds));
    const name = text(reference, "name");
    if (name !== "") dnsName(name, "path", "roleRef.name", errors);
    checkSubjects(object, namespaced, errors);
    return errors;
  },
  validateUpdate: (object, old) =>
    equalJson(object.roleRef, old.roleRef)
      ? []
      : [invalid("roleRef", object.roleRef, "cannot change roleRef")],
});

/** Rules of access control kinds. */
export const rbacRules: RuleTable = {
  [`${group}/v1/Role`]: role(true),
  [`${group}/v1/ClusterRole`]: role(false),
  [`${group}/v1/RoleBinding`]: binding(true),
  [`${group}/v1/ClusterRoleBinding`]: binding(false),
};

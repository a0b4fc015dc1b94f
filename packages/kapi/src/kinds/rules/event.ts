/**
 * Rules of events, in the form of either group.
 */
import type { JsonObject } from "@kontinuum/std";
import type { FieldError } from "../../resource.ts";
import { invalid, required } from "../../schema/field-error.ts";
import { has, text } from "../read.ts";
import { labelKey, type Errors } from "./checks.ts";
import type { KindRules, RuleTable } from "./kind-rules.ts";

/** Events name an object of their own namespace; those of cluster-wide objects live in `default`. */
function checkEventNamespace(object: JsonObject, key: "involvedObject" | "regarding", errors: Errors): void {
  const namespace = text(object, "metadata", "namespace");
  const about = text(object, key, "namespace");
  const allowed = about === "" ? ["default", "kube-system"].includes(namespace) : about === namespace;
  if (!allowed) errors.push(invalid(`${key}.namespace`, about, "does not match event.namespace"));
}

/** Checks of events that carry an event time: the new kind of events, in either group. */
function checkNewEvent(
  object: JsonObject,
  names: { controller: string; instance: string; about: string },
  errors: Errors,
): void {
  const controller = text(object, names.controller);
  if (controller === "") errors.push(required(names.controller));
  else labelKey(controller, names.controller, errors);
  const instance = text(object, names.instance);
  if (instance === "") errors.push(required(names.instance));
  else if (instance.length > 128) errors.push(invalid(names.instance, "", "can have at most 128 characters"));
  for (const key of ["action", "reason"]) {
    const value = text(object, key);
    if (value === "") errors.push(required(key));
    else if (value.length > 128) errors.push(invalid(key, "", "can have at most 128 characters"));
  }
  const type = text(object, "type");
  if (type !== "Normal" && type !== "Warning") errors.push(invalid("type", "", `has invalid value: ${type}`));
}

const coreEvent: KindRules = {
  validate(object) {
    const errors: FieldError[] = [];
    checkEventNamespace(object, "involvedObject", errors);
    if (has(object, "eventTime")) {
      checkNewEvent(
        object,
        { controller: "reportingComponent", instance: "reportingInstance", about: "involvedObject" },
        errors,
      );
    }
    return errors.map((error) => ({
      ...error,
      field: error.field.replace(/^reportingComponent$/, "reportingController"),
    }));
  },
};

const event: KindRules = {
  validate(object, context) {
    const errors: FieldError[] = [];
    checkEventNamespace(object, "regarding", errors);
    // Events that the older group wrote have no event time; they may still be updated here.
    if (!has(object, "eventTime") && has(object, "deprecatedFirstTimestamp") && context.subresource === "")
      return errors;
    if (!has(object, "eventTime")) errors.push(required("eventTime"));
    checkNewEvent(
      object,
      { controller: "reportingController", instance: "reportingInstance", about: "regarding" },
      errors,
    );
    if (text(object, "note").length > 1024)
      errors.push(invalid("note", "", "can have at most 1024 characters"));
    return errors;
  },
};

/** Rules of events. */
export const eventRules: RuleTable = {
  "v1/Event": coreEvent,
  "events.k8s.io/v1/Event": event,
};

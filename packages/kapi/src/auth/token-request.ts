/**
 * `serviceaccounts/<name>/token`: a token on request (authentication.k8s.io/v1 TokenRequest).
 */
import { at, isObject, stringAt, type JsonObject } from "@kontinuum/std";
import { answerForm, sendObject } from "../registry/answer.ts";
import type { SpecialHandler } from "../registry/handler.ts";
import { readWriteBody } from "../registry/write-body.ts";
import { timestamp } from "../registry/metadata.ts";
import { parseWriteOptions } from "../registry/options.ts";
import { printBadValue } from "../schema/field-error.ts";
import { plainText } from "../schema/json-value.ts";
import { badRequest, conflict, invalid, notFound } from "../status/status.ts";
import type { BoundObject, ObjectReader, ServiceAccountTokens } from "./service-account-tokens.ts";

const minSeconds = 600;
const maxSeconds = 2 ** 32;
const defaultSeconds = 3600;
const kind = { group: "authentication.k8s.io", kind: "TokenRequest" };

/** Makes the handler. */
export function tokenRequestHandler(
  tokens: ServiceAccountTokens,
  read: ObjectReader,
  now: () => number,
): SpecialHandler {
  return async (context, resource) => {
    const form = answerForm(context, resource, false);
    parseWriteOptions(context, "CreateOptions");
    const { namespace, name } = context.info;
    const { value } = await readWriteBody(context, resource);
    if (value["kind"] !== undefined && value["kind"] !== "TokenRequest")
      throw badRequest("the body must be a TokenRequest");
    const account = await read("serviceaccounts", namespace, name);
    if (!account) throw notFound(resource, name);
    const uid = stringAt(account, "metadata", "uid") ?? "";
    const spec = isObject(value["spec"]) ? value["spec"] : {};
    const asked = spec["expirationSeconds"] ?? defaultSeconds;
    const seconds = typeof asked === "number" ? asked : Number.NaN;
    if (!Number.isInteger(seconds) || seconds < minSeconds) {
      throw invalid(kind, name, [
        {
          reason: "FieldValueInvalid",
          field: "spec.expirationSeconds",
          message: `Invalid value: ${printBadValue(asked)}: may not specify a duration less than 10 minutes`,
        },
      ]);
    }
    if (seconds > maxSeconds) {
      throw invalid(kind, name, [
        {
          reason: "FieldValueInvalid",
          field: "spec.expirationSeconds",
          message: `Invalid value: ${seconds}: may not specify a duration larger than 2^32 seconds`,
        },
      ]);
    }
    const audiences = Array.isArray(spec["audiences"])
      ? spec["audiences"].filter((item) => typeof item === "string")
      : [];
    const bound = await boundObject(spec, namespace, read, name);
    const { token, expires } = await tokens.issue({ namespace, name, uid }, audiences, seconds, bound);
    const object: JsonObject = {
      kind: "TokenRequest",
      apiVersion: "authentication.k8s.io/v1",
      metadata: { name, namespace, creationTimestamp: timestamp(now()) },
      spec: { ...spec, audiences, expirationSeconds: seconds },
      status: { token, expirationTimestamp: timestamp(expires * 1000) },
    };
    return sendObject(context, resource, form, 201, object, now());
  };
}

const boundKinds: Readonly<Record<string, { readonly plural: string; readonly namespaced: boolean }>> = {
  Pod: { plural: "pods", namespaced: true },
  Secret: { plural: "secrets", namespaced: true },
  Node: { plural: "nodes", namespaced: false },
};

async function boundObject(
  spec: JsonObject,
  namespace: string,
  read: ObjectReader,
  account: string,
): Promise<BoundObject | undefined> {
  const reference = spec["boundObjectRef"];
  if (!isObject(reference)) return undefined;
  const boundKind = plainText(reference["kind"] ?? "");
  const found = boundKinds[boundKind];
  if (!found)
    throw badRequest(
      `cannot bind token for serviceaccount ${JSON.stringify(account)} to object of kind ${JSON.stringify(boundKind)}`,
    );
  const boundName = plainText(reference["name"] ?? "");
  const object = await read(found.plural, found.namespaced ? namespace : "", boundName);
  if (!object) throw notFound({ group: "", plural: found.plural }, boundName);
  const uid = String(at(object, "metadata", "uid") ?? "");
  const asked = reference["uid"];
  if (typeof asked === "string" && asked !== "" && asked !== uid) {
    throw conflict(
      { group: "", plural: found.plural },
      boundName,
      `the UID in the bound object reference (${asked}) does not match the UID in record. The object might have been deleted and then recreated`,
    );
  }
  return { kind: boundKind, name: boundName, uid };
}

/**
 * Rules of CertificateSigningRequests.
 */
import { at, type JsonObject } from "@kontinuum/std";
import { cloneJson } from "../../json/json.ts";
import type { FieldError, StrategyContext } from "../../resource.ts";
import { duplicate, invalid, required } from "../../schema/field-error.ts";
import { child, ensure, has, items, number, text, texts } from "../read.ts";
import type { KindRules, RuleTable } from "./kind-rules.ts";

/** The requester is whoever sends the request; nobody can sign up for somebody else. */
function requester(object: JsonObject, context: StrategyContext): void {
  const spec = ensure(object, "spec");
  const { name, uid, groups, extra } = context.user;
  spec.username = name;
  if (uid === undefined) delete spec.uid;
  else spec.uid = uid;
  spec.groups = [...groups];
  if (extra === undefined) delete spec.extra;
  else spec.extra = Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]]));
}

const pemRequest =
  /-----BEGIN CERTIFICATE REQUEST-----\s+([A-Za-z0-9+/=\s]+?)\s+-----END CERTIFICATE REQUEST-----/;

/** Whether a text is PEM of one DER sequence: what it says is the signer's to read. */
function isRequest(body: string): boolean {
  const match = pemRequest.exec(body);
  const encoded = (match?.[1] ?? "").replaceAll(/\s/g, "");
  if (encoded === "" || encoded.length % 4 !== 0) return false;
  const der = Buffer.from(encoded, "base64");
  const long = der[1] ?? 0;
  const size = long < 0x80 ? 0 : long - 0x80;
  const length = size === 0 ? long : size <= 3 && der.length > 2 + size ? der.readUIntBE(2, size) : -1;
  return der[0] === 0x30 && der.length === 2 + size + length;
}

const signingRequest: KindRules = {
  prepareCreate: requester,
  prepareUpdate(object, old) {
    object.spec = cloneJson(old.spec);
  },
  prepareSubresource(object, old) {
    const conditions = at(object, "status", "conditions");
    object.spec = cloneJson(old.spec);
    object.status = {
      ...cloneJson(child(old, "status") ?? {}),
      ...(conditions === undefined ? {} : { conditions }),
    };
  },
  validate(object) {
    const errors: FieldError[] = [];
    const spec = child(object, "spec");
    const body = Buffer.from(text(spec, "request"), "base64").toString("latin1");
    if (!isRequest(body)) {
      errors.push(
        invalid("spec.request", "<contents redacted>", "PEM block type must be CERTIFICATE REQUEST"),
      );
    }
    const usages = texts(spec, "usages");
    if (usages.length === 0) errors.push(required("spec.usages"));
    for (const [index, usage] of usages.entries())
      if (usages.indexOf(usage) < index) errors.push(duplicate(`spec.usages[${index}]`, usage));
    const signer = text(spec, "signerName");
    if (signer !== "" && !/^[^/]+\.[^/]+\/.+$/.test(signer)) {
      errors.push(
        invalid(
          "spec.signerName",
          signer,
          "must be a fully qualified domain and path of the form 'example.com/signer-name'",
        ),
      );
    }
    if (has(spec, "expirationSeconds") && number(spec, "expirationSeconds") < 600) {
      errors.push(
        invalid(
          "spec.expirationSeconds",
          number(spec, "expirationSeconds"),
          "may not specify a duration less than 600 seconds (10 minutes)",
        ),
      );
    }
    const types = new Set(items(object, "status", "conditions").map((condition) => text(condition, "type")));
    if (types.has("Approved") && types.has("Denied")) {
      errors.push(
        invalid("status.conditions", "Denied", "Approved and Denied conditions are mutually exclusive"),
      );
    }
    return errors;
  },
};

/** Rules of signing requests. */
export const certificateRules: RuleTable = {
  "certificates.k8s.io/v1/CertificateSigningRequest": signingRequest,
};

/**
 * One call of an admission webhook and the checks on its answer (admission.k8s.io/v1 AdmissionReview).
 */
import { at, isObject, messageOf, stringAt, type JsonObject, type Random } from "@kontinuum/std";
import { stringifyJson, parseJson } from "../json/json.ts";
import type { TargetClient } from "../outbound/target-client.ts";
import type { ServiceTargets } from "../outbound/service-target.ts";
import type { AdmissionRequest } from "./admission.ts";
import { requestValue } from "./expression.ts";

/** What calls need. */
export interface WebhookCaller {
  readonly client: TargetClient;
  readonly targets: ServiceTargets;
  readonly random: Random;
}

/** A webhook's answer. */
export interface WebhookAnswer {
  readonly allowed: boolean;
  readonly code: number;
  readonly reason: string;
  readonly message: string;
  /** Operations of a JSON patch. */
  readonly patch: unknown;
  readonly warnings: readonly string[];
  readonly annotations: Readonly<Record<string, string>>;
}

/** Warnings taken of one answer at most. */
const maxWarnings = 50;

/** A webhook could not be asked, or its answer was none: its failure policy decides. */
export class WebhookFailure extends Error {}

/** Asks a webhook. Fails with {@link WebhookFailure}. */
export async function callWebhook(
  caller: WebhookCaller,
  webhook: JsonObject,
  request: AdmissionRequest,
): Promise<WebhookAnswer> {
  const uid = caller.random.uuid();
  const seconds = Math.min(30, Math.max(1, Number(webhook["timeoutSeconds"] ?? 10)));
  const review = {
    kind: "AdmissionReview",
    apiVersion: "admission.k8s.io/v1",
    request: {
      uid,
      ...requestValue(request),
      object: request.object ?? null,
      oldObject: request.oldObject ?? null,
    },
  };
  let answer: unknown;
  try {
    const target = await caller.targets.ofClientConfig(webhook["clientConfig"]);
    const path = `${target.path}${target.path.includes("?") ? "&" : "?"}timeout=${seconds}s`;
    answer = await caller.client.call(
      { ...target, path },
      { body: stringifyJson(review), timeoutMs: seconds * 1000 },
    );
  } catch (error) {
    throw new WebhookFailure(`failed to call webhook: ${messageOf(error)}`, { cause: error });
  }
  return readAnswer(answer, uid);
}

function readAnswer(answer: unknown, uid: string): WebhookAnswer {
  if (
    stringAt(answer, "kind") !== "AdmissionReview" ||
    stringAt(answer, "apiVersion") !== "admission.k8s.io/v1"
  ) {
    throw new WebhookFailure("expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview");
  }
  const response = at(answer, "response");
  if (!isObject(response)) throw new WebhookFailure("webhook response was absent");
  if (response["uid"] !== uid) throw new WebhookFailure("expected response.uid to be the uid of the request");
  const patch = response["patch"];
  let operations: unknown;
  if (typeof patch === "string" && patch !== "") {
    if (response["patchType"] !== "JSONPatch")
      throw new WebhookFailure('webhook returned response.patch but not response.patchType "JSONPatch"');
    try {
      operations = parseJson(Buffer.from(patch, "base64").toString("utf8"));
    } catch (error) {
      throw new WebhookFailure("webhook returned a patch that can't be decoded", { cause: error });
    }
  }
  const warnings = Array.isArray(response["warnings"])
    ? response["warnings"].filter((item) => typeof item === "string")
    : [];
  const annotations: Record<string, string> = {};
  const sent = response["auditAnnotations"];
  if (isObject(sent))
    for (const [key, value] of Object.entries(sent)) if (typeof value === "string") annotations[key] = value;
  const code = at(response, "status", "code");
  return {
    allowed: response["allowed"] === true,
    code: typeof code === "number" && code >= 400 && code < 600 ? code : 400,
    reason: stringAt(response, "status", "reason") ?? "",
    message: stringAt(response, "status", "message") ?? "",
    patch: operations,
    warnings: warnings.slice(0, maxWarnings),
    annotations,
  };
}

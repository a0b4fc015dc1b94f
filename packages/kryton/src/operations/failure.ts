/**
 * What a failure of a provider means to the caller: an error code of the API, and whether trying again
 * can help.
 *
 * The order of the rules is the contract's: provider kind, then the text of a Kubernetes error, then
 * its status, then the plain text, then `INTERNAL`.
 */
import { CodedError, isCoded, messageOf } from "@kontinuum/std";
import { KrytonError, krytonErrors, type KrytonCode } from "../model/errors.ts";
import type { RetryClass } from "../model/operation.ts";
import { ProviderError } from "../provider-contract/contract.ts";

type TextRule = readonly [matches: (text: string) => boolean, code: KrytonCode];

const has =
  (...parts: string[]) =>
  (text: string): boolean =>
    parts.every((part) => text.includes(part));
const any =
  (...rules: ((text: string) => boolean)[]) =>
  (text: string): boolean =>
    rules.some((rule) => rule(text));

const textRules: readonly TextRule[] = [
  [has("datasource", "not found"), "IMAGE_NOT_READY"],
  [
    (text) =>
      text.includes("insufficient permissions") && (text.includes("clone") || text.includes("kryton-images")),
    "CLONE_FORBIDDEN",
  ],
  [any(has("datavolumes/source"), has("authorization failed", "clone")), "CLONE_FORBIDDEN"],
  [
    any(has("no endpoints available"), has("failed calling webhook"), has("virt-api")),
    "PROVIDER_UNAVAILABLE",
  ],
  [any(has("disk pressure"), has("evicted")), "NODE_DISK_PRESSURE"],
  [any(has("admission webhook"), has("denied the request")), "ADMISSION_DENIED"],
  [
    (text) => text.includes("storageclass") && (text.includes("not found") || text.includes("invalid")),
    "STORAGE_INVALID",
  ],
  [has("ensure cdi clone access"), "CLONE_RBAC_FAILED"],
];

function codeOfText(message: string): KrytonCode | undefined {
  const text = message.toLowerCase();
  return textRules.find(([matches]) => matches(text))?.[1];
}

/** The API error of any failure during provider work. */
export function classify(error: unknown): KrytonError {
  if (error instanceof KrytonError) return error;
  if (error instanceof ProviderError) return classifyProvider(error);
  if (isCoded(error, "cancelled") || (error instanceof Error && error.name === "AbortError")) {
    return new KrytonError("CONFLICT", "the operation was cancelled", { cause: error });
  }
  if (error instanceof CodedError && error.meaning.retryable) {
    return new KrytonError("PROVIDER_UNAVAILABLE", error.message, { cause: error });
  }
  const code = codeOfText(messageOf(error));
  if (code) return new KrytonError(code, messageOf(error), { cause: error });
  return new KrytonError("INTERNAL", "internal error", { cause: error });
}

function classifyProvider(error: ProviderError): KrytonError {
  const options = { cause: error };
  switch (error.kind) {
    case "not-found":
      return new KrytonError("NOT_FOUND", error.message, options);
    case "conflict":
      return new KrytonError("CONFLICT", error.message, options);
    case "unsupported":
      return new KrytonError("UNSUPPORTED", error.message, options);
    case "invalid":
      return new KrytonError("INVALID_REQUEST", error.message, options);
    default:
      break;
  }
  const byText = codeOfText(error.message);
  const status = error.kubernetesStatus;
  if (status !== undefined) {
    if (byText) {
      if (status < 500 && krytonErrors[byText].status >= 500) {
        const code = byText === "PROVIDER_UNAVAILABLE" ? "INVALID_REQUEST" : byText;
        return new KrytonError(
          krytonErrors[code].status < 500 ? code : "INVALID_REQUEST",
          error.message,
          options,
        );
      }
      return new KrytonError(byText, error.message, options);
    }
    if (status === 409) return new KrytonError("CONFLICT", error.message, options);
    if (status >= 500) return new KrytonError("PROVIDER_ERROR", error.message, options);
    return new KrytonError("INVALID_REQUEST", error.message, options);
  }
  if (byText) return new KrytonError(byText, error.message, options);
  return error.kind === "unavailable"
    ? new KrytonError("PROVIDER_UNAVAILABLE", error.message, { ...options, retryAfterMs: 5000 })
    : new KrytonError("PROVIDER_ERROR", error.message, options);
}

/** Whether an attempt that ended in `error` is worth repeating. */
export function retryClassOf(error: unknown): RetryClass {
  if (error instanceof ProviderError) return error.retryClass;
  if (error instanceof CodedError) return error.meaning.retryable ? "retry" : "fatal";
  return "fatal";
}

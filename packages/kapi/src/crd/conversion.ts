/**
 * Conversion between versions of a custom resource (apiextensions.k8s.io/v1 ConversionReview): builds the
 * question, checks the answer. The HTTP call is the caller's.
 *
 * An answer is untrusted: it must carry the same uid, as many objects in the same order, each of the wanted
 * version and kind, with unchanged name, namespace and uid; of the metadata only labels and annotations are
 * taken from it.
 */
import { at, CodedError, isObject, stringAt, type JsonObject } from "@kontinuum/std";
import { cloneJson, equalJson, own, printJson } from "../schema/json-value.ts";

/** Review versions this server can speak: their texts are the same but for the version. The definition names its preference. */
export const conversionReviewVersions: readonly string[] = ["v1", "v1beta1"];

/** Longest failure text of a webhook that is repeated to a client. */
const maxFailureText = 1024;

/** Sends one ConversionReview to the definition's webhook and returns the parsed answer. */
export type ConversionCall = (review: JsonObject) => Promise<unknown>;

/** The version of review a definition's webhook prefers of those this server speaks; `v1` when it names none of them. */
export function reviewVersionOf(manifest: JsonObject): string {
  const wanted = at(manifest, "spec", "conversion", "webhook", "conversionReviewVersions");
  const known = Array.isArray(wanted)
    ? wanted.find((version: unknown) => conversionReviewVersions.some((spoken) => spoken === version))
    : undefined;
  return typeof known === "string" ? known : "v1";
}

/** A ConversionReview request for `objects`. */
export function conversionReview(
  objects: readonly JsonObject[],
  apiVersion: string,
  uid: string,
  reviewVersion = "v1",
): JsonObject {
  return {
    apiVersion: `apiextensions.k8s.io/${reviewVersion}`,
    kind: "ConversionReview",
    request: { uid, desiredAPIVersion: apiVersion, objects },
  };
}

function kindText(object: JsonObject | undefined): string {
  return `${stringAt(object, "apiVersion") ?? ""}, Kind=${stringAt(object, "kind") ?? ""}`;
}

/** Checks one converted object against its original and returns what is kept of it. */
function accept(original: JsonObject, converted: unknown, apiVersion: string, index: number): JsonObject {
  const which = `converted object ${index}`;
  if (!isObject(converted)) throw new Error(`${which} is not an object`);
  if (own(converted, "apiVersion") !== apiVersion)
    throw new Error(
      `${which} has apiVersion ${printJson(own(converted, "apiVersion"))}, expected ${apiVersion}`,
    );
  if (own(converted, "kind") !== own(original, "kind")) throw new Error(`${which} changed its kind`);
  const before = own(original, "metadata");
  const after = own(converted, "metadata");
  if (!isObject(before) || !isObject(after)) throw new Error(`${which} has no metadata`);
  for (const name of ["name", "namespace", "uid"]) {
    if (!equalJson(own(before, name) ?? "", own(after, name) ?? ""))
      throw new Error(`${which} changed metadata.${name}`);
  }
  const metadata = cloneJson(before);
  for (const name of ["labels", "annotations"]) {
    const value = own(after, name);
    if (value === undefined || value === null) delete metadata[name];
    else if (isObject(value) && Object.values(value).every((item) => typeof item === "string"))
      metadata[name] = value;
    else throw new Error(`${which} has a metadata.${name} that is not a map of strings`);
  }
  return { ...converted, metadata };
}

/**
 * Checks a ConversionReview answer and returns the converted objects.
 *
 * @throws Error naming what is wrong with the answer.
 */
export function convertedObjects(
  answer: unknown,
  originals: readonly JsonObject[],
  apiVersion: string,
  uid: string,
  reviewVersion = "v1",
): readonly JsonObject[] {
  if (!isObject(answer) || own(answer, "kind") !== "ConversionReview")
    throw new Error("the answer is not a ConversionReview");
  if (own(answer, "apiVersion") !== `apiextensions.k8s.io/${reviewVersion}`)
    throw new Error(`the answer has apiVersion ${printJson(own(answer, "apiVersion"))}`);
  const response = own(answer, "response");
  if (!isObject(response)) throw new Error("the answer has no response");
  if (own(response, "uid") !== uid) throw new Error("the answer's uid is not the request's");
  const result = own(response, "result");
  if (!isObject(result) || own(result, "status") !== "Success") {
    const message = isObject(result) ? own(result, "message") : undefined;
    throw new Error(
      typeof message === "string" && message !== "" ? message.slice(0, maxFailureText) : "no reason given",
    );
  }
  const converted = own(response, "convertedObjects");
  if (!Array.isArray(converted) || converted.length !== originals.length)
    throw new Error(
      `the answer holds ${Array.isArray(converted) ? converted.length : 0} objects, expected ${originals.length}`,
    );
  return originals.map((original, i) => accept(original, converted[i], apiVersion, i));
}

/**
 * A converter that asks a webhook about the objects that are not yet of the wanted version, in one call.
 *
 * @throws CodedError `internal` from the returned function, worded as the API server does.
 */
export function webhookConverter(
  call: ConversionCall,
  newUid: () => string,
  reviewVersion = "v1",
): (objects: readonly JsonObject[], toApiVersion: string) => Promise<readonly JsonObject[]> {
  return async (objects, apiVersion) => {
    const pending = objects.filter((object) => own(object, "apiVersion") !== apiVersion);
    if (pending.length === 0) return objects;
    const uid = newUid();
    let converted: readonly JsonObject[];
    try {
      converted = convertedObjects(
        await call(conversionReview(pending, apiVersion, uid, reviewVersion)),
        pending,
        apiVersion,
        uid,
        reviewVersion,
      );
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      throw new CodedError("internal", `conversion webhook for ${kindText(pending[0])} failed: ${text}`, {
        cause: error,
      });
    }
    const queue = converted.values();
    return objects.map((object) =>
      own(object, "apiVersion") === apiVersion ? object : (queue.next().value ?? object),
    );
  };
}

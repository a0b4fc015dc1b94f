/**
 * Kontinuum between its versions: `v1alpha1` has the role in `spec`, `v1alpha2` in `status`, with more beside it.
 *
 * What `v1alpha1` has no place for travels in an annotation, so that an old client that writes back what it
 * read loses nothing. A role nobody stated follows from the placement.
 */
import { at, isObject, stringAt, type JsonObject } from "@kontinuum/std";
import { group } from "./kind.ts";

/** Annotation with the part of the status that `v1alpha1` has no place for. */
const keptStatus = "kontinuum.sh/v1alpha2-status";

/** Answers a ConversionReview (apiextensions.k8s.io/v1) about Kontinuums. */
export function convertKontinuums(review: JsonObject): JsonObject {
  const uid = stringAt(review, "request", "uid") ?? "";
  const target = stringAt(review, "request", "desiredAPIVersion") ?? "";
  const objects = at(review, "request", "objects");
  const answer = (response: JsonObject): JsonObject => ({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "ConversionReview",
    response: { uid, ...response },
  });
  const convert =
    target === `${group}/v1alpha1` ? toOlder : target === `${group}/v1alpha2` ? toNewer : undefined;
  if (!convert || !Array.isArray(objects)) {
    return answer({
      result: { status: "Failure", message: `a Kontinuum can't be converted to ${JSON.stringify(target)}` },
    });
  }
  const converted = objects.filter(isObject).map((object) => ({ ...convert(object), apiVersion: target }));
  return answer({ result: { status: "Success" }, convertedObjects: converted });
}

function toOlder(object: JsonObject): JsonObject {
  const { role, lastHeartbeatTime, ...rest } = mapAt(object, "status");
  const spec = mapAt(object, "spec");
  const metadata = mapAt(object, "metadata");
  const annotations = { ...mapAt(metadata, "annotations"), [keptStatus]: JSON.stringify(rest) };
  return {
    ...object,
    metadata: Object.keys(rest).length === 0 ? metadata : { ...metadata, annotations },
    spec: { ...spec, role: role ?? roleOf(spec) },
    status: lastHeartbeatTime === undefined ? {} : { lastHeartbeatTime },
  };
}

function toNewer(object: JsonObject): JsonObject {
  const { role, ...spec } = mapAt(object, "spec");
  const metadata = mapAt(object, "metadata");
  const { [keptStatus]: kept, ...annotations } = mapAt(metadata, "annotations");
  return {
    ...object,
    metadata: kept === undefined ? metadata : { ...metadata, annotations },
    spec,
    status: { ...parseKept(kept), ...mapAt(object, "status"), role: role ?? roleOf(spec) },
  };
}

const roleOf = (spec: JsonObject): string => (stringAt(spec, "region") ? "Worker" : "ControlPlane");

function parseKept(text: unknown): JsonObject {
  if (typeof text !== "string") return {};
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    // Somebody changed the annotation: the next heartbeat states everything again.
    return {};
  }
}

function mapAt(object: JsonObject, key: string): JsonObject {
  const value = object[key];
  return isObject(value) ? value : {};
}

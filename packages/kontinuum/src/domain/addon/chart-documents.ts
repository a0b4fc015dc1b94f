/**
 * The objects a rendered chart consists of.
 */
import { CodedError, isObject, stringAt, type JsonObject } from "@kontinuum/std";
import { parseAllDocuments } from "yaml";

/** Most objects of one chart. */
const maxDocuments = 2000;

/** The objects in rendered order. Fails with `invalid_argument` when the chart renders no valid YAML. */
export function chartDocuments(text: string): readonly JsonObject[] {
  const documents = parseAllDocuments(text, { logLevel: "silent" });
  if (!Array.isArray(documents)) return [];
  if (documents.length > maxDocuments) {
    throw new CodedError("payload_too_large", `the chart renders more than ${maxDocuments} objects`);
  }
  return documents.flatMap((document) => {
    const problem = document.errors[0];
    if (problem)
      throw new CodedError(
        "invalid_argument",
        `the chart renders no valid YAML: ${problem.message.split("\n")[0] ?? ""}`,
      );
    const value: unknown = document.toJS({ maxAliasCount: 1000 });
    if (!isObject(value)) return [];
    return stringAt(value, "kind") === "List" && Array.isArray(value["items"])
      ? value["items"].filter(isObject)
      : [value];
  });
}

/** Whether an object defines a custom resource. */
export const isDefinition = (object: JsonObject): boolean =>
  stringAt(object, "kind") === "CustomResourceDefinition";

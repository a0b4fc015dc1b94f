/**
 * The watch stream: newline-separated events, decoded one by one.
 *
 * An `ERROR` event ends the iteration with the coded error of its `Status`: `gone` means that the start
 * version is compacted and a fresh list is needed. An object that can't be read is handed to
 * `onUnreadable` and skipped: one broken object must not blind a watcher to all others.
 *
 * Source: Kubernetes API concepts ("Efficient detection of changes").
 */
import { at, CodedError, isObject, stringAt, toCoded } from "@kontinuum/std";
import { parseJson, readLines } from "./body.ts";
import { limits } from "./limits.ts";
import type { KubeObject, Resource } from "./object.ts";
import { statusError } from "./status.ts";

/** One event of a watch. A bookmark says that everything up to its version was delivered. */
export type WatchEvent<T extends KubeObject = KubeObject> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: T }
  | { readonly type: "BOOKMARK"; readonly resourceVersion: string; readonly initialEventsEnd: boolean };

/** Called for an object that is not what its kind promises. */
export type OnUnreadable = (error: CodedError, value: unknown) => void;

/** Decodes a watch stream. `what` names the request in errors. */
export async function* readWatch<T extends KubeObject>(
  body: AsyncIterable<Uint8Array>,
  resource: Resource<T>,
  what: string,
  onUnreadable?: OnUnreadable,
): AsyncGenerator<WatchEvent<T>> {
  for await (const line of readLines(body, limits.watchLineBytes)) {
    const event = parseJson(line);
    const type = isObject(event) ? event["type"] : undefined;
    const object = at(event, "object");
    if (type === "ERROR") {
      const code = at(object, "code");
      throw statusError(typeof code === "number" ? code : 500, object, what);
    }
    if (type === "BOOKMARK") {
      const resourceVersion = stringAt(object, "metadata", "resourceVersion");
      if (resourceVersion === undefined) continue;
      const mark = stringAt(object, "metadata", "annotations", "k8s.io/initial-events-end");
      yield { type, resourceVersion, initialEventsEnd: mark === "true" };
    } else if (type === "ADDED" || type === "MODIFIED" || type === "DELETED") {
      const parsed = tryParse(resource, object, onUnreadable);
      if (parsed) yield { type, object: parsed };
    } else {
      throw new CodedError("unavailable", `${what}: the stream is not a watch stream`);
    }
  }
}

/** Parses, or reports and returns `undefined`; without `onUnreadable` it throws. */
export function tryParse<T extends KubeObject>(
  resource: Resource<T>,
  value: unknown,
  onUnreadable?: OnUnreadable,
): T | undefined {
  try {
    return resource.parse(value);
  } catch (error) {
    if (!onUnreadable) throw error;
    onUnreadable(toCoded(error), value);
    return undefined;
  }
}

/**
 * Where a watch starts: with the present state, with a marked present state, or after a version.
 */
import type { ListOptions } from "./options.ts";

/** The start of a watch. */
export interface WatchStart {
  /** Send every present object as ADDED first. */
  readonly initial: boolean;
  /** Send the bookmark that ends the initial state. */
  readonly marked: boolean;
  /** Send what came after this version; undefined: from now. */
  readonly after: number | undefined;
}

/** Decides by the options (Kubernetes API concepts, "Resource versions" and "Streaming lists"). */
export function watchStart({ resourceVersion, sendInitialEvents }: ListOptions): WatchStart {
  if (sendInitialEvents === true) return { initial: true, marked: true, after: undefined };
  const none = resourceVersion === undefined || resourceVersion === 0;
  if (sendInitialEvents === false)
    return { initial: false, marked: false, after: none ? undefined : resourceVersion };
  return { initial: none, marked: false, after: none ? undefined : resourceVersion };
}

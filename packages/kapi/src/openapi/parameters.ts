/**
 * The query parameters of the API's operations, as the published documents describe them. kubectl reads
 * `fieldValidation` from here to know that the server validates.
 */
import type { JsonObject } from "@kontinuum/std";

const query = (name: string, type: "string" | "boolean" | "integer", description: string): JsonObject => ({
  name,
  in: "query",
  description,
  schema: { type, uniqueItems: true },
});

/** `?pretty`. */
export const pretty = query(
  "pretty",
  "string",
  "If 'true', then the output is pretty printed. Defaults to compact output unless the user-agent indicates a browser or command-line HTTP tool (curl and wget).",
);

const dryRun = query(
  "dryRun",
  "string",
  "When present, indicates that modifications should not be persisted. The only valid value is All: every stage of the request runs, nothing is stored.",
);
const fieldManager = query(
  "fieldManager",
  "string",
  "The name of the actor that makes the change: at most 128 printable characters. Required for apply patches.",
);
const fieldValidation = query(
  "fieldValidation",
  "string",
  "What happens to objects with unknown or duplicate fields: Ignore drops them silently, Warn (the default) reports each in a warning, Strict refuses the request.",
);
const force = query("force", "boolean", "Take over fields that other managers own. Only for apply patches.");
const limit = query(
  "limit",
  "integer",
  "The most items of one answer; more are announced by metadata.continue.",
);
const continueToken = query(
  "continue",
  "string",
  "The token of the previous answer, to read on where it ended.",
);
const labelSelector = query(
  "labelSelector",
  "string",
  "Restricts the answer to objects whose labels match. Everything by default.",
);
const fieldSelector = query(
  "fieldSelector",
  "string",
  "Restricts the answer to objects whose fields match. Everything by default.",
);
const resourceVersion = query(
  "resourceVersion",
  "string",
  "The version that the answer must be of, as resourceVersionMatch says.",
);
const resourceVersionMatch = query(
  "resourceVersionMatch",
  "string",
  "How resourceVersion is applied to a list: Exact or NotOlderThan.",
);
const timeoutSeconds = query(
  "timeoutSeconds",
  "integer",
  "Ends a list or a watch after this time, in seconds.",
);
const watch = query("watch", "boolean", "Stream changes instead of a list. Specify resourceVersion.");
const allowWatchBookmarks = query("allowWatchBookmarks", "boolean", "Ask for events of type BOOKMARK.");
const sendInitialEvents = query(
  "sendInitialEvents",
  "boolean",
  "Begin a watch with the present state, closed by a bookmark annotated k8s.io/initial-events-end.",
);
const gracePeriodSeconds = query(
  "gracePeriodSeconds",
  "integer",
  "Seconds before the object is deleted. Zero means at once.",
);
const orphanDependents = query(
  "orphanDependents",
  "boolean",
  "Deprecated: use propagationPolicy. Whether dependents are orphaned.",
);
const propagationPolicy = query(
  "propagationPolicy",
  "string",
  "What becomes of dependents: Orphan, Background or Foreground.",
);
const ignoreReadErrors = query(
  "ignoreStoreReadErrorWithClusterBreakingPotential",
  "boolean",
  "Delete an object that cannot be read any more. It may break the cluster.",
);

const listing = [
  pretty,
  allowWatchBookmarks,
  continueToken,
  fieldSelector,
  labelSelector,
  limit,
  resourceVersion,
  resourceVersionMatch,
  sendInitialEvents,
  timeoutSeconds,
];

/** Parameters by action (`x-kubernetes-action`). */
export const parametersOf: Readonly<Record<string, readonly JsonObject[]>> = {
  list: [...listing, watch],
  deletecollection: [
    ...listing,
    dryRun,
    gracePeriodSeconds,
    ignoreReadErrors,
    orphanDependents,
    propagationPolicy,
  ],
  post: [dryRun, fieldManager, fieldValidation],
  put: [dryRun, fieldManager, fieldValidation],
  patch: [dryRun, fieldManager, fieldValidation, force],
  delete: [dryRun, gracePeriodSeconds, ignoreReadErrors, orphanDependents, propagationPolicy],
};

/** A parameter in the path. */
export const pathParameter = (name: string, description: string): JsonObject => ({
  name,
  in: "path",
  description,
  required: true,
  schema: { type: "string", uniqueItems: true },
});

/**
 * What definitions forbid: bad definitions themselves, and new objects of a kind that is going away.
 */
import { validateCrd } from "../crd/index.ts";
import type { WriteGuard } from "../registry/deps.ts";
import { metaText } from "../registry/metadata.ts";
import { forbidden, invalid } from "../status/status.ts";
import type { CrdLifecycle } from "./crd-lifecycle.ts";

/** Makes the guard. Refuses with 422 and 403. */
export function crdGuard(lifecycle: () => CrdLifecycle | undefined): WriteGuard {
  return ({ resource, subresource, object, old }) => {
    if (resource.group === "apiextensions.k8s.io" && resource.kind === "CustomResourceDefinition") {
      // A definition that is going may be broken: only its finalizers matter now.
      if (subresource !== "" || metaText(object, "deletionTimestamp") !== "") return Promise.resolve();
      const errors = validateCrd(object, old);
      if (errors.length > 0) throw invalid(resource, metaText(object, "name"), errors);
    }
    if (resource.origin === "custom" && !old && lifecycle()?.isTerminating(resource.group, resource.plural)) {
      throw forbidden(
        resource,
        metaText(object, "name"),
        "create not allowed while custom resource definition is terminating",
      );
    }
    return Promise.resolve();
  };
}

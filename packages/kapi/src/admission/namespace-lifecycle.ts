/**
 * Nothing is created in a namespace that does not exist or is going away; the namespaces everything needs stay.
 */
import { at } from "@kontinuum/std";
import type { AdmissionPlugin, AdmissionRequest } from "./admission.ts";
import { metaText } from "../registry/metadata.ts";
import { forbidden, notFound } from "../status/status.ts";
import type { JsonObject } from "@kontinuum/std";

/** Namespaces that can't be deleted. */
const immortal = new Set(["default", "kube-system", "kube-public"]);

/** Reads one namespace: from the cache, or from the store when `certain`. */
export type NamespaceReader = (name: string, certain: boolean) => Promise<JsonObject | undefined>;

/** The plug-in. Refuses with 404 and 403. */
export function namespaceLifecycle(read: NamespaceReader): AdmissionPlugin {
  return {
    name: "NamespaceLifecycle",
    async validate(request) {
      const { resource, operation, name, namespace } = request;
      if (resource.group === "" && resource.plural === "namespaces") {
        if (operation === "DELETE" && immortal.has(name))
          throw forbidden(resource, name, "this namespace may not be deleted");
        return;
      }
      if (operation !== "CREATE" || !resource.namespaced || isReview(request)) return;
      // A namespace made a moment ago may not be in the cache yet, one deleted a moment ago may still be.
      let found = await read(namespace, false);
      if (!found || metaText(found, "deletionTimestamp") !== "") found = await read(namespace, true);
      if (!found) throw notFound({ group: "", plural: "namespaces" }, namespace);
      if (metaText(found, "deletionTimestamp") === "" && at(found, "status", "phase") !== "Terminating")
        return;
      throw forbidden(
        resource,
        name,
        `unable to create new content in namespace ${namespace} because it is being terminated`,
        [
          {
            reason: "NamespaceTerminating",
            message: `namespace ${namespace} is being terminated`,
            field: "metadata.namespace",
          },
        ],
      );
    },
  };
}

function isReview({ resource }: AdmissionRequest): boolean {
  return resource.group === "authorization.k8s.io" || resource.group === "authentication.k8s.io";
}

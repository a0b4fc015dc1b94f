/**
 * Rules of CustomResourceDefinitions: defaults and what the server sets. The checks of schemas and rules are in
 * `crd/`.
 */
import type { JsonObject } from "@kontinuum/std";
import { validateCrd } from "../../crd/validate-crd.ts";
import { child, ensure, isTrue, items, setDefaults, setEmptyDefaults, text } from "../read.ts";
import type { RuleTable } from "./kind-rules.ts";

function defaults(object: JsonObject): void {
  const spec = ensure(object, "spec");
  const names = ensure(spec, "names");
  const kind = text(names, "kind");
  if (kind !== "") setEmptyDefaults(names, { singular: kind.toLowerCase(), listKind: `${kind}List` });
  const conversion = ensure(spec, "conversion");
  setEmptyDefaults(conversion, { strategy: "None" });
  const service = child(conversion, "webhook", "clientConfig", "service");
  if (service !== undefined) setDefaults(service, { port: 443 });
}

/** Rules of definitions. */
export const definitionRules: RuleTable = {
  "apiextensions.k8s.io/v1/CustomResourceDefinition": {
    statusKeeps: "metadata",
    generation: true,
    ownStructure: true,
    defaults,
    prepareCreate(object) {
      const stored = items(object, "spec", "versions").find((version) => isTrue(version, "storage"));
      Object.assign(ensure(object, "status"), {
        storedVersions: stored === undefined ? [] : [text(stored, "name")],
      });
    },
    prepareUpdate(object) {
      // A version that becomes the stored one is recorded at once, before any object is written in it.
      const status = ensure(object, "status");
      const recorded = Array.isArray(status.storedVersions) ? (status.storedVersions as unknown[]) : [];
      const stored = items(object, "spec", "versions").find((version) => isTrue(version, "storage"));
      const name = text(stored, "name");
      if (name !== "" && !recorded.includes(name)) status.storedVersions = [...recorded, name];
    },
    validate: (object) => [...validateCrd(object)],
    validateUpdate: (object, old) => {
      const before = new Set(validateCrd(object).map(({ field, message }) => `${field}\n${message}`));
      return validateCrd(object, old).filter(({ field, message }) => !before.has(`${field}\n${message}`));
    },
  },
};

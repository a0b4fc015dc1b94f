/**
 * Checks of the volumes of a pod spec.
 */
import type { JsonObject } from "@kontinuum/std";
import { duplicate, forbidden, invalid, notSupported, required } from "../../schema/field-error.ts";
import { child, has, items, number, text } from "../read.ts";
import { dnsName, type Errors } from "./checks.ts";
import { checkFieldPath } from "./field-path.ts";

/** Checks volumes; returns their names. */
export function checkVolumes(
  volumes: readonly JsonObject[],
  path: string,
  errors: Errors,
): ReadonlySet<string> {
  const names = new Set<string>();
  for (const [index, volume] of volumes.entries()) {
    const here = `${path}[${index}]`;
    const name = text(volume, "name");
    const before = errors.length;
    if (name !== "") {
      dnsName(name, "label", `${here}.name`, errors);
      if (names.has(name)) errors.push(duplicate(`${here}.name`, name));
    }
    checkSource(volume, here, errors);
    // A volume that is wrong itself is none to those who mount it.
    if (name !== "" && errors.length === before) names.add(name);
  }
  return names;
}

function checkSource(volume: JsonObject, path: string, errors: Errors): void {
  const sources = Object.keys(volume).filter((key) => key !== "name" && has(volume, key));
  if (sources.length === 0) errors.push(required(path, "must specify a volume type"));
  for (const extra of sources.slice(1)) {
    errors.push(forbidden(`${path}.${extra}`, "may not specify more than 1 volume type"));
  }
  if (has(volume, "configMap") && text(volume, "configMap", "name") === "")
    errors.push(required(`${path}.configMap.name`));
  if (has(volume, "secret") && text(volume, "secret", "secretName") === "") {
    errors.push(required(`${path}.secret.secretName`));
  }
  for (const key of ["configMap", "secret", "downwardAPI", "projected"]) {
    checkMode(child(volume, key), "defaultMode", `${path}.${key}`, errors);
    for (const [index, item] of items(volume, key, "items").entries()) {
      const here = `${path}.${key}.items[${index}]`;
      checkMode(item, "mode", here, errors);
      checkRelative(text(item, "path"), `${here}.path`, errors);
    }
  }
  const type = text(volume, "hostPath", "type");
  if (!hostPathTypes.includes(type)) errors.push(notSupported(`${path}.hostPath.type`, type, hostPathTypes));
  for (const [index, source] of items(volume, "projected", "sources").entries()) {
    const here = `${path}.projected.sources[${index}]`;
    for (const key of ["configMap", "secret"]) {
      if (has(source, key) && text(source, key, "name") === "") errors.push(required(`${here}.${key}.name`));
    }
    checkDownward(items(source, "downwardAPI", "items"), `${here}.downwardAPI`, errors);
  }
  checkProjectedPaths(items(volume, "projected", "sources"), `${path}.projected`, errors);
  checkDownward(items(volume, "downwardAPI", "items"), `${path}.downwardAPI`, errors);
  const hostPath = text(volume, "hostPath", "path");
  if (hostPath.split("/").includes(".."))
    errors.push(invalid(`${path}.hostPath.path`, hostPath, "must not contain '..'"));
}

const hostPathTypes = [
  "",
  "BlockDevice",
  "CharDevice",
  "Directory",
  "DirectoryOrCreate",
  "File",
  "FileOrCreate",
  "Socket",
];

function checkDownward(list: readonly JsonObject[], path: string, errors: Errors): void {
  for (const item of list) {
    if (has(item, "fieldRef")) {
      checkFieldPath(text(item, "fieldRef", "fieldPath"), true, `${path}.fieldRef.fieldPath`, errors);
    } else if (!has(item, "resourceFieldRef")) {
      errors.push(required(path, "one of fieldRef and resourceFieldRef is required"));
    }
  }
}

/** No two sources of a projected volume may write the same file. */
function checkProjectedPaths(sources: readonly JsonObject[], path: string, errors: Errors): void {
  const seen = new Set<string>();
  for (const source of sources) {
    const files = ["secret", "configMap", "downwardAPI"].flatMap((key) => items(source, key, "items"));
    const token = child(source, "serviceAccountToken");
    for (const file of token === undefined ? files : [...files, token]) {
      const name = text(file, "path");
      if (name === "") continue;
      if (seen.has(name)) errors.push(invalid(path, name, "conflicting duplicate paths"));
      seen.add(name);
    }
  }
}

function checkMode(object: JsonObject | undefined, key: string, path: string, errors: Errors): void {
  if (!has(object, key)) return;
  const mode = number(object, key);
  if (mode < 0 || mode > 0o777) {
    errors.push(
      invalid(`${path}.${key}`, mode, "must be a number between 0 and 0777 (octal), both inclusive"),
    );
  }
}

function checkRelative(value: string, path: string, errors: Errors): void {
  if (value.startsWith("/")) errors.push(invalid(path, value, "must be a relative path"));
  if (value.split("/").includes("..")) errors.push(invalid(path, value, "must not contain '..'"));
  else if (value.startsWith("..")) errors.push(invalid(path, value, "must not start with '..'"));
}

/**
 * The conversion stanza of a definition.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import type { FieldError } from "../resource.ts";
import { child, forbidden, invalid, notSupported, required } from "../schema/field-error.ts";
import { isBase64 } from "../schema/formats.ts";
import { isInteger, own } from "../schema/json-value.ts";
import { conversionReviewVersions } from "./conversion.ts";

function urlErrors(text: unknown, path: string, errors: FieldError[]): void {
  let url: URL | undefined;
  try {
    url = typeof text === "string" ? new URL(text) : undefined;
  } catch {
    url = undefined;
  }
  if (!url) errors.push(required(path, "url must be a valid URL; desired format: https://host[/path]"));
  else if (url.protocol !== "https:")
    errors.push(
      invalid(
        path,
        url.protocol.slice(0, -1),
        "'https' is the only allowed URL scheme; desired format: https://host[/path]",
      ),
    );
  else if (url.username !== "" || url.password !== "")
    errors.push(invalid(path, "", "user information is not permitted in the URL"));
  else if (url.search !== "")
    errors.push(invalid(path, url.search.slice(1), "query parameters are not permitted in the URL"));
  else if (url.hash !== "")
    errors.push(invalid(path, url.hash.slice(1), "fragments are not permitted in the URL"));
}

function serviceErrors(service: JsonObject, path: string, errors: FieldError[]): void {
  for (const name of ["name", "namespace"]) {
    const value = own(service, name);
    if (typeof value !== "string" || value === "")
      errors.push(required(child(path, name), `service ${name} is required`));
  }
  const port = own(service, "port");
  if (port !== undefined && port !== null && !(isInteger(port) && port >= 1 && port <= 65_535))
    errors.push(
      invalid(child(path, "port"), port, "port is not valid: must be between 1 and 65535, inclusive"),
    );
  const urlPath = own(service, "path");
  if (typeof urlPath === "string" && !urlPath.startsWith("/"))
    errors.push(invalid(child(path, "path"), urlPath, "must start with a '/'"));
}

function clientErrors(config: JsonObject, path: string, errors: FieldError[]): void {
  const url = own(config, "url") ?? undefined;
  const service = own(config, "service") ?? undefined;
  if ((url === undefined) === (service === undefined))
    errors.push(required(child(path, "url"), "exactly one of url or service is required"));
  if (url !== undefined) urlErrors(url, child(path, "url"), errors);
  if (service !== undefined) {
    if (isObject(service)) serviceErrors(service, child(path, "service"), errors);
    else errors.push(invalid(child(path, "service"), service, "must be an object"));
  }
  const bundle = own(config, "caBundle");
  if (bundle === undefined || bundle === null || bundle === "") return;
  if (typeof bundle !== "string" || !isBase64(bundle))
    errors.push(invalid(child(path, "caBundle"), "", "unable to load root certificates: must be base64"));
}

/** What is wrong with `spec.conversion`. */
export function conversionErrors(conversion: unknown, path: string): readonly FieldError[] {
  if (conversion === undefined || conversion === null) return [];
  if (!isObject(conversion)) return [invalid(path, conversion, "must be an object")];
  const errors: FieldError[] = [];
  const strategy = own(conversion, "strategy");
  const webhook = own(conversion, "webhook") ?? undefined;
  const webhookPath = child(path, "webhook");
  if (strategy === undefined || strategy === "") errors.push(required(child(path, "strategy")));
  else if (strategy !== "None" && strategy !== "Webhook")
    errors.push(notSupported(child(path, "strategy"), strategy, ["None", "Webhook"]));
  if (strategy !== "Webhook") {
    if (webhook !== undefined)
      errors.push(forbidden(webhookPath, "should not be set when strategy is not set to Webhook"));
    return errors;
  }
  if (!isObject(webhook))
    return [...errors, required(webhookPath, "required when strategy is set to Webhook")];
  const config = own(webhook, "clientConfig");
  if (isObject(config)) clientErrors(config, child(webhookPath, "clientConfig"), errors);
  else errors.push(required(child(webhookPath, "clientConfig"), "required when strategy is set to Webhook"));
  const versions = own(webhook, "conversionReviewVersions");
  const versionsPath = child(webhookPath, "conversionReviewVersions");
  if (!Array.isArray(versions) || versions.length === 0) errors.push(required(versionsPath));
  else if (
    !versions.some((version) => typeof version === "string" && conversionReviewVersions.includes(version))
  ) {
    errors.push(
      invalid(versionsPath, versions, `must include at least one of ${conversionReviewVersions.join(", ")}`),
    );
  }
  return errors;
}

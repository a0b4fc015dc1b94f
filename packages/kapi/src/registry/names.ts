/**
 * What names, label keys and label values may look like, with the texts clients show (Kubernetes API conventions,
 * "Names"; RFC 1123 and 1035).
 */
import type { ResourceDefinition } from "../resource.ts";

const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const label1035 = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const qualifiedPart = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;

const subdomainText =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const labelText =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const label1035Text =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const qualifiedText =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const tooLong = (limit: number): string => `must be no more than ${limit} bytes`;

/** Why `name` is no name of this kind; empty when it is one. */
export function nameErrors(
  name: string,
  rule: NonNullable<ResourceDefinition["nameRule"]>,
): readonly string[] {
  switch (rule) {
    case "subdomain":
      return subdomainErrors(name);
    case "label":
      return check(name, label, labelText, 63);
    case "dns1035":
      return check(name, label1035, label1035Text, 63);
    case "path": {
      if (name === "." || name === "..") return [`may not be '${name}'`];
      const errors: string[] = [];
      if (name.includes("/")) errors.push("may not contain '/'");
      if (name.includes("%")) errors.push("may not contain '%'");
      if (name.length > 1024) errors.push(tooLong(1024));
      return errors;
    }
  }
}

function check(text: string, pattern: RegExp, why: string, limit: number): readonly string[] {
  const errors: string[] = [];
  if (text.length > limit) errors.push(`must be no more than ${limit} characters`);
  if (!pattern.test(text)) errors.push(why);
  return errors;
}

/** Why a text is no RFC 1123 subdomain. */
export function subdomainErrors(text: string): readonly string[] {
  return check(text, subdomain, subdomainText, 253);
}

/** Why a text is no qualified name (`[prefix/]name`): label and annotation keys, finalizers. */
export function qualifiedNameErrors(text: string): readonly string[] {
  const parts = text.split("/");
  const errors: string[] = [];
  let name = text;
  if (parts.length === 2) {
    const [prefix = ""] = parts;
    name = parts[1] ?? "";
    if (prefix === "") errors.push("prefix part must be non-empty");
    else errors.push(...subdomainErrors(prefix).map((why) => `prefix part ${why}`));
  } else if (parts.length > 2) {
    return [
      `a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  if (name === "") errors.push("name part must be non-empty");
  else if (name.length > 63) errors.push(`name part ${tooLong(63)}`);
  if (!qualifiedPart.test(name)) errors.push(qualifiedText);
  return errors;
}

/** Why a text is no label value. */
export function labelValueErrors(text: string): readonly string[] {
  const errors: string[] = [];
  if (text.length > 63) errors.push(tooLong(63));
  if (text !== "" && !qualifiedPart.test(text)) {
    errors.push(
      "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    );
  }
  return errors;
}

/**
 * The Kubernetes format library: `format.dns1123Label().validate(x)` gives the problems of a text, or none.
 */
import { isBase64, isDate, isDateTime, isUri } from "../../schema/formats.ts";
import { CelError } from "../error.ts";
import { global, member, regexFactor, traversalFactor, type Overload } from "../function.ts";
import { ArrayList, CelOpaque, CelOptional, none, type CelValue } from "../value.ts";

const typeName = "kubernetes.NamedFormat";

/** Problems of a text; empty when it has the format. */
type Problems = (text: string) => readonly string[];

/** A named format. */
class CelFormat extends CelOpaque {
  readonly typeName = typeName;
  readonly name: string;
  readonly problems: Problems;

  constructor(name: string, problems: Problems) {
    super();
    this.name = name;
    this.problems = problems;
  }

  override equals(other: CelOpaque): boolean {
    return other instanceof CelFormat && other.name === this.name;
  }
}

const label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const dns1123Label = new RegExp(`^${label}$`);
const dns1123Subdomain = new RegExp(`^${label}(\\.${label})*$`);
const dns1035Label = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const qualifiedPart = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;

const labelText =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const subdomainText =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const label1035Text =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const qualifiedText =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const labelValueText =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

function named(pattern: RegExp, max: number, text: string): Problems {
  return (value) => [
    ...(value.length > max ? [`must be no more than ${max} characters`] : []),
    ...(pattern.test(value.slice(0, max + 1)) ? [] : [text]),
  ];
}

/** A prefix may end in a dash, because more is appended to it. */
const prefix =
  (problems: Problems): Problems =>
  (value) =>
    problems(value.endsWith("-") && value.length > 1 ? `${value.slice(0, -1).replace(/-+$/, "")}a` : value);

const isOne =
  (holds: (value: string) => boolean, text: string): Problems =>
  (value) =>
    holds(value) ? [] : [text];

function qualifiedName(value: string): readonly string[] {
  const parts = value.split("/");
  const name = parts.at(-1) ?? "";
  if (parts.length > 2)
    return [
      `a qualified ${qualifiedText} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  const problems: string[] = [];
  if (parts.length === 2) {
    const [domain = ""] = parts;
    if (domain === "") problems.push("prefix part must be non-empty");
    else problems.push(...subdomain(domain).map((text) => `prefix part ${text}`));
  }
  if (name === "") problems.push("name part must be non-empty");
  else if (name.length > 63) problems.push("name part must be no more than 63 characters");
  if (!qualifiedPart.test(name.slice(0, 64))) problems.push(qualifiedText);
  return problems;
}

const subdomain = named(dns1123Subdomain, 253, subdomainText);

const formats = new Map<string, Problems>([
  ["dns1123Label", named(dns1123Label, 63, labelText)],
  ["dns1123Subdomain", subdomain],
  ["dns1035Label", named(dns1035Label, 63, label1035Text)],
  ["dns1123LabelPrefix", prefix(named(dns1123Label, 63, labelText))],
  ["dns1123SubdomainPrefix", prefix(subdomain)],
  ["dns1035LabelPrefix", prefix(named(dns1035Label, 63, label1035Text))],
  ["qualifiedName", qualifiedName],
  ["labelValue", (value) => (value === "" ? [] : named(qualifiedPart, 63, labelValueText)(value))],
  ["uri", isOne(isUri, "invalid URI")],
  [
    "uuid",
    isOne(
      (value) => /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i.test(value),
      "does not match the UUID format",
    ),
  ],
  ["byte", isOne((value) => value === "" || isBase64(value), "invalid base64")],
  ["date", isOne(isDate, "invalid date")],
  ["datetime", isOne(isDateTime, "invalid datetime")],
]);

const values = new Map([...formats].map(([name, problems]) => [name, new CelFormat(name, problems)]));

/** Price of the longest pattern of a format: 128 characters of a regular expression. */
const formatPatternCost = 128 * regexFactor;

function validate(format: CelValue, text: string): CelValue {
  if (!(format instanceof CelFormat)) throw new CelError("no such overload");
  const problems = format.problems(text);
  return problems.length === 0 ? none : new CelOptional(new ArrayList(problems));
}

/** All overloads of formats. */
export const formatLibrary: readonly Overload[] = [
  ...[...values].map(([name, format]) => global(`format.${name}`, [], typeName, () => format)),
  global("format.named", ["string"], `optional(${typeName})`, (name) => {
    const format = values.get(name);
    return format ? new CelOptional(format) : none;
  }),
  member("validate", [typeName, "string"], "optional(list(string))", validate, {
    cost: ({ args: [, text = 0] }) => Math.ceil(text * traversalFactor) * formatPatternCost,
    charge: ([, text = ""]) => (typeof text === "string" ? 20 + text.length / 5 : 1),
  }),
];

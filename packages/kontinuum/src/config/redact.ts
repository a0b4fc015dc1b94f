/**
 * Connection strings for people: without user info and without anything in the query that could be a secret.
 */

const secretParameter = /pass|secret|token|key|auth|credential/i;

/**
 * The connection string without credentials. A text that is no address keeps only its scheme: what cannot be
 * read cannot be shown to be free of secrets.
 */
export function redactConnectionString(text: string): string {
  const parsed = parse(text);
  if (!parsed) return text === "" ? "" : `${/^[a-z][a-z0-9+.-]*:/i.exec(text)?.[0] ?? ""}[redacted]`;
  const query = parsed.query
    .split("&")
    .filter((pair) => pair !== "" && !secretParameter.test(decode(pair.split("=")[0] ?? "")))
    .join("&");
  return `${parsed.scheme}://${parsed.rest}${query === "" ? "" : `?${query}`}`;
}

interface Parsed {
  readonly scheme: string;
  readonly rest: string;
  readonly query: string;
}

// Not `URL`: sqlite://kontinuum.db and unix:///path must come out as they went in.
function parse(text: string): Parsed | undefined {
  const match = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)([^?#]*)(?:\?([^#]*))?$/i.exec(text);
  if (!match) return undefined;
  const [, scheme = "", authority = "", path = "", query = ""] = match;
  return { scheme, rest: authority.slice(authority.lastIndexOf("@") + 1) + path, query };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

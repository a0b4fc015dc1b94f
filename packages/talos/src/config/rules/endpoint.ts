/**
 * The cluster's endpoint, as both forms of a configuration write it.
 */

/** What is wrong with an endpoint such as `https://192.0.2.10:6443`, or `undefined`. */
export function endpointProblem(endpoint: string): string | undefined {
  const match = /^[a-z][a-z0-9+.-]*:\/\/(\[[0-9a-fA-F:.]+\]|[^\s/:[\]@]+)(?::(\d+))?(?:[/?#]|$)/.exec(
    endpoint,
  );
  if (!match) return "must be a URL with a host";
  const port = match[2] === undefined ? 443 : Number(match[2]);
  return port < 1 || port > 65_535 ? "has a port outside 1 to 65535" : undefined;
}

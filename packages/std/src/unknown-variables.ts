/**
 * Environment variables that look like ours and are not: mostly a misspelled name, whose value would be ignored
 * in silence.
 *
 * They are worth a warning and no refusal: a newer configuration must start an older program. Kubernetes puts a
 * Service's address into the environment of every pod of its namespace, so a Service called `kontinuum` gives
 * `KONTINUUM_SERVICE_HOST`; those names are nobody's mistake (Kubernetes documentation, "Service", "Environment
 * variables").
 */

const serviceLink = /_SERVICE_(HOST|PORT(_.*)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/;

/** Most names that are reported one by one. */
const maxReported = 20;

/** Most changed letters of a name that is still taken for a misspelling. */
const maxDistance = 3;

/** One line for each variable with the prefix that is not in `known`; never its value. */
export function unknownVariables(
  environment: Readonly<Record<string, string | undefined>>,
  prefix: string,
  known: readonly string[],
): string[] {
  const names = new Set(known);
  const unknown = Object.keys(environment).filter(
    (name) =>
      name.startsWith(prefix) &&
      !names.has(name) &&
      !serviceLink.test(name) &&
      !isServiceUrl(name, environment),
  );
  const lines = unknown.slice(0, maxReported).map((name) => {
    const near = nearest(name, known);
    return `${name} is not a variable of this program and is ignored${near === undefined ? "" : `; did you mean ${near}?`}`;
  });
  const rest = unknown.length - lines.length;
  return rest > 0 ? [...lines, `${rest} more variables that begin with ${prefix} are ignored`] : lines;
}

function isServiceUrl(name: string, environment: Readonly<Record<string, string | undefined>>): boolean {
  return name.endsWith("_PORT") && /^(tcp|udp|sctp):\/\//.test(environment[name] ?? "");
}

function nearest(name: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = maxDistance + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= least) continue;
    const distance = editDistance(name, candidate);
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best;
}

/** Letters to insert, remove or replace (Levenshtein), one row at a time. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const replace = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replace, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}

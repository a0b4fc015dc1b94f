/**
 * The name a process registers under: its host name, because that is what people know it by.
 */
import { isDnsSubdomain, uuidv7, type Edges } from "@kontinuum/std";

/**
 * The name: `configured` when given, else the lower-cased host name, else (no host name, `localhost`, or one
 * that is not a valid object name) a new UUID.
 */
export function processName(
  hostname: string,
  configured: string,
  edges: Pick<Edges, "clock" | "random">,
): string {
  const name = (configured || hostname).toLowerCase();
  if (name === "" || name === "localhost" || !isDnsSubdomain(name)) return uuidv7(edges.clock, edges.random);
  return name;
}

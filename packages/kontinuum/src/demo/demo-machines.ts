/**
 * The demo's machines, made through the machine API like anybody's.
 */
import { at, CodedError, isObject, stringAt, type Edges } from "@kontinuum/std";
import { fetchTransport } from "@kontinuum/controller";
import { talosImage } from "../machines/virtual-rack.ts";

/** A machine with its address. */
export interface DemoMachine {
  readonly name: string;
  readonly address: string;
}

const pollMs = 100;

/** Makes the machines that are missing and resolves when all run. Fails with `deadline_exceeded`. */
export async function ensureDemoMachines(
  url: string,
  names: readonly string[],
  options: { readonly edges: Edges; readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<readonly DemoMachine[]> {
  const { edges, signal } = options;
  const transport = fetchTransport({ baseUrl: url, edges });
  const until = edges.clock.monotonic() + options.timeoutMs;
  const call = async (method: string, path: string, body?: object): Promise<unknown> => {
    const response = await transport({
      method,
      path,
      signal,
      ...(body ? { body: JSON.stringify(body), headers: { "content-type": "application/json" } } : {}),
    });
    const chunks: Uint8Array[] = [];
    for await (const chunk of response.body) chunks.push(chunk);
    const answer: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    if (response.status >= 400) {
      throw new CodedError(
        "unavailable",
        `the machine API refused ${method} ${path}: ${stringAt(answer, "message") ?? response.status}`,
      );
    }
    return answer;
  };
  try {
    for (;;) {
      const found = machinesIn(await call("GET", "/api/v1/machines?limit=200"));
      for (const name of names.filter((one) => !found.has(one))) {
        await call("POST", "/api/v1/machines", {
          name,
          image: talosImage.id,
          compute: { cpu: 4, memoryMiB: 8192 },
          disk: { sizeGiB: 64 },
          labels: { demo: "rack" },
        });
      }
      const running = names.flatMap((name) => {
        const machine = found.get(name);
        return machine?.address === undefined ? [] : [{ name, address: machine.address }];
      });
      if (running.length === names.length) return running;
      if (edges.clock.monotonic() > until)
        throw new CodedError("deadline_exceeded", "the demo's machines did not come up");
      await edges.clock.sleep(pollMs, signal);
    }
  } finally {
    await transport.close();
  }
}

function machinesIn(answer: unknown): Map<string, { readonly address: string | undefined }> {
  const items = at(answer, "items");
  const found = new Map<string, { readonly address: string | undefined }>();
  for (const machine of Array.isArray(items) ? items.filter(isObject) : []) {
    const name = stringAt(machine, "name") ?? stringAt(machine, "spec", "name");
    const addresses = machine["ipAddresses"] ?? at(machine, "status", "ipAddresses");
    const first: unknown = Array.isArray(addresses) ? addresses[0] : undefined;
    const state = stringAt(machine, "state") ?? stringAt(machine, "status", "state");
    if (name === undefined) continue;
    found.set(name, { address: state === "running" && typeof first === "string" ? first : undefined });
  }
  return found;
}

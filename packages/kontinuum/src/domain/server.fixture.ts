/**
 * An API server of our own, in memory, for tests of what controllers do to objects.
 */
import {
  CachedClient,
  Client,
  Manager,
  type ControllerDefinition,
  type DefinedController,
  type Transport,
} from "@kontinuum/controller";
import { createServer } from "@kontinuum/kapi";
import { systemClock, systemEdges, type Edges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage";
import { parseConfig, type Config } from "../config/config.ts";
import { readValues, type Values } from "../config/variables.ts";
import { converters, crds } from "../kinds/index.ts";
import type { DomainContext } from "./domain-context.ts";
import { defaultTimings, type Timings } from "./timings.ts";
import { ZoneLeases } from "./zone-lease/zone-leases.ts";

/** A server and ways to use it. */
export interface TestServer {
  readonly edges: Edges;
  readonly transport: Transport;
  /** Always asks the server. */
  readonly client: Client;
  /** The same, as the type steps take. */
  readonly cached: CachedClient;
  /** Runs controllers until the test ends. */
  run(...controllers: DefinedController[]): void;
  close(): Promise<void>;
}

/** Starts a server. `kinds: "builtin"` leaves our own definitions out: a zone's own cluster. */
export async function startTestServer(
  options: { readonly kinds?: "builtin"; readonly edges?: Partial<Edges> } = {},
): Promise<TestServer> {
  const edges = systemEdges(options.edges);
  const store = await openStore("memory://", edges);
  const server = createServer({
    storage: store,
    edges,
    ...(options.kinds === "builtin" ? {} : { crds, converters }),
    auth: { authenticators: [], authorizers: [] },
  });
  await server.start();
  const transport = server.transport(server.loopback);
  const stop = new AbortController();
  const runs: Promise<void>[] = [];
  return {
    edges,
    transport,
    client: new Client(transport, { edges, fieldManager: "test" }),
    cached: new CachedClient(transport, { edges }, { find: () => undefined }),
    run(...controllers) {
      const definitions: ControllerDefinition[] = controllers.map(({ definition }) => definition);
      runs.push(new Manager({ name: "test", transport, edges, controllers: definitions }).run(stop.signal));
    },
    async close() {
      stop.abort();
      await Promise.all(runs);
      await server.stop();
      await store.close();
    },
  };
}

/** Configuration of a hub with anonymous access. */
export const testConfig = (values: Partial<Values> = {}): Config =>
  parseConfig(
    readValues({
      KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "true",
      KONTINUUM_SERVER_STORAGE: "memory://",
      ...values,
    }),
  );

/** A context with short intervals. */
export function testContext(
  edges: Edges,
  values: Partial<Values> = {},
  timings: Partial<Timings> = {},
): DomainContext {
  const all: Timings = { ...defaultTimings, retryMs: 50, poolRetryMs: 50, probeRetryMs: 50, ...timings };
  return {
    config: testConfig(values),
    timings: all,
    leases: new ZoneLeases({ edges, holder: () => "test", durationMs: all.zoneLeaseMs }),
  };
}

/** Waits until `holds`, at most ten seconds. */
export async function eventually(what: string, holds: () => Promise<boolean>): Promise<void> {
  const until = systemClock.monotonic() + 10_000;
  while (!(await holds())) {
    if (systemClock.monotonic() > until) throw new Error(`did not happen: ${what}`);
    await systemClock.sleep(10);
  }
}

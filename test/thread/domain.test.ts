/**
 * A zone with a public domain: on a hub with sign-in it gets a gateway, a route, an issuer and a certificate in its own
 * cluster, waits for the certificate, and is then exposed under its host name.
 *
 * Everything is real but the hardware and the two controllers in the zone's cluster that are not ours: the simulator's
 * stand-ins mark the gateway as programmed and the certificate as issued.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { Client, findCondition, secrets, secretText, type Condition } from "@kontinuum/controller";
import { at, systemClock, systemEdges } from "@kontinuum/std";
import { SimulatedRack } from "@kontinuum/talos";
import {
  addInstance,
  addZone,
  parseConfig,
  readValues,
  startProcess,
  systemNamespace,
  zoneKind,
} from "../../packages/kontinuum/src/index.ts";
import { withDownstream } from "../../packages/kontinuum/src/domain/downstream/downstream.ts";
import { kontinuumZoneRunner } from "../../packages/kontinuum/src/machines/zone-runner.ts";
import { findHelm } from "../services/kubernetes-tools.ts";
import { startOidcProvider } from "../services/oidc-provider.ts";
import { freePort } from "../services/service.ts";

const helm = await findHelm();
const charts = path.resolve(import.meta.dirname, "../../packages/kontinuum/charts");
const host = "a.local.example.test";
const place = `/namespaces/${systemNamespace}`;

test(
  "a zone under a domain",
  { timeout: 180_000, skip: typeof helm === "string" ? false : helm.missing },
  async (t) => {
    const edges = systemEdges();
    const dir = await mkdtemp(path.join(os.tmpdir(), "kontinuum-domain-"));
    const range = `127.${64 + (process.pid % 60)}`;
    const provider = await startOidcProvider("kontinuum", "http://127.0.0.1:1/app");
    const rack = await SimulatedRack.create({
      machines: 1,
      edges,
      addressBase: `${range}.102.10`,
      statePath: path.join(dir, "rack"),
      runners: [kontinuumZoneRunner(edges)],
    });
    const port = await freePort();
    const hub = await startProcess(
      parseConfig(
        readValues({
          KONTINUUM_OIDC_ISSUER_URL: provider.issuerUrl,
          KONTINUUM_OIDC_ADMIN_GROUPS: "admins",
          KONTINUUM_ACME_EMAIL: "ops@example.test",
          KONTINUUM_ACME_SERVER: "https://acme.example.test/directory",
          KONTINUUM_SERVER_NAME: "hub",
          KONTINUUM_SERVER_ADDR: `127.0.0.1:${port}`,
          KONTINUUM_SERVER_STORAGE: `sqlite://${encodeURI(path.join(dir, "hub.db"))}`,
          KONTINUUM_SERVER_GRPC_ENDPOINT: `127.0.0.1:${port}`,
          KONTINUUM_DISCOVERY_ALLOWED_RANGES: `${range}.0.0/16`,
          KONTINUUM_HELM: typeof helm === "string" ? helm : "",
          KONTINUUM_CHART_DIR: charts,
        }),
      ),
      { edges, timings: { retryMs: 300, probeRetryMs: 500, poolRetryMs: 500, healthMs: 5000 } },
    );
    t.after(async () => {
      await hub.stop();
      await rack.close();
      await provider.stop();
      await rm(dir, { recursive: true, force: true });
    });
    const client = new Client(hub.server.transport(hub.server.loopback), { edges });
    const address = rack.nodes[0]?.spec.address ?? "";
    await addInstance(client, edges.network, { namespace: systemNamespace, address });
    const input = { region: "local", zone: "a", talosAddress: address, domain: "example.test" };
    const zone = await addZone(client, edges.network, input);
    const condition = async (type: string): Promise<Condition | undefined> => {
      const one = await client.find(zoneKind.resource, {
        namespace: systemNamespace,
        name: zone.metadata.name,
      });
      return findCondition(one?.status?.conditions, type);
    };
    const eventually = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
      const until = systemClock.monotonic() + 90_000;
      while (!(await holds())) {
        if (systemClock.monotonic() > until) {
          const { items } = await client.list(zoneKind.resource);
          assert.fail(`${what}: ${JSON.stringify(items[0]?.status)}`);
        }
        await systemClock.sleep(100);
      }
    };

    // The stand-in issues at once: the wait may be over before anybody sees it.
    await eventually("the wait for the certificate, or its end", async () => {
      const installed = await condition("Installed");
      const reached = installed?.reason === "WaitingForCertificate" || installed?.status === "True";
      return reached && installed.message.includes(host);
    });
    const secret = await client.find(secrets, {
      namespace: systemNamespace,
      name: `taloscluster-${zone.metadata.name}`,
    });
    const kubeconfig = secret && secretText(secret, "kubeconfig");
    assert.ok(kubeconfig);
    await withDownstream(kubeconfig, edges, async ({ client: downstream }) => {
      const get = (to: string): Promise<unknown> => downstream.request("GET", to);
      const gateway = await get(`/apis/gateway.networking.k8s.io/v1${place}/gateways/kontinuum`);
      assert.equal(at(gateway, "spec", "gatewayClassName"), "cilium");
      assert.deepEqual(
        [at(gateway, "spec", "listeners", 1, "hostname"), at(gateway, "spec", "listeners", 1, "protocol")],
        [host, "HTTPS"],
      );
      const route = await get(`/apis/gateway.networking.k8s.io/v1${place}/httproutes/kontinuum`);
      assert.deepEqual(at(route, "spec", "hostnames"), [host]);
      const issuer = await get("/apis/cert-manager.io/v1/clusterissuers/kontinuum");
      assert.deepEqual(
        [at(issuer, "spec", "acme", "server"), at(issuer, "spec", "acme", "email")],
        ["https://acme.example.test/directory", "ops@example.test"],
      );
      const path = `/apis/cert-manager.io/v1${place}/certificates/kontinuum`;
      assert.deepEqual(at(await get(path), "spec", "dnsNames"), [host]);
      const environment = await get(`/api/v1${place}/configmaps/kontinuum-env`);
      assert.equal(at(environment, "data", "KONTINUUM_OIDC_REDIRECT_URL"), `https://${host}/app`);
    });

    await eventually("the zone to be ready", async () => (await condition("Ready"))?.status === "True");
    assert.equal((await condition("Installed"))?.message, `installed at https://${host}`);
    assert.equal((await condition("RegistryJoined"))?.status, "True");
  },
);

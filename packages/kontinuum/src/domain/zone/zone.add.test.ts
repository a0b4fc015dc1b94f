/**
 * Adding a zone while discovery writes the same machine: nobody has to try again by hand.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Client, type Transport } from "@kontinuum/controller";
import { isCoded, systemEdges } from "@kontinuum/std";
import { instanceKind, systemNamespace } from "../../kinds/index.ts";
import { ensureNamespace } from "../ensure.ts";
import { addInstance } from "../instance/instance.add.ts";
import { startTestServer, type TestServer } from "../server.fixture.ts";
import { addZone } from "./zone.add.ts";

const { network } = systemEdges();
let server: TestServer;
before(async () => {
  server = await startTestServer();
  await ensureNamespace(server.client, systemNamespace);
});
after(() => server.close());

test("a machine whose status is written at the same moment is adopted all the same", async () => {
  const address = "192.0.2.1";
  const { metadata } = await addInstance(server.client, network, { namespace: systemNamespace, address });
  const ref = { namespace: systemNamespace, name: metadata.name };
  let disturbed = 0;
  const transport: Transport = async (request) => {
    if (request.method === "PUT" && request.path.includes("/instances/") && disturbed < 3) {
      const patch = { metadata: { annotations: { round: String(disturbed++) } } };
      await server.client.patch(instanceKind.resource, ref, { type: "merge", patch });
    }
    return server.transport(request);
  };
  const client = new Client(transport, { edges: server.edges });
  await addZone(client, network, { region: "eu", zone: "a", talosAddress: address });
  const found = await server.client.find(instanceKind.resource, ref);
  assert.equal(disturbed, 3);
  assert.deepEqual(
    [found?.metadata.labels?.["kontinuum.sh/region"], found?.metadata.annotations?.["round"]],
    ["eu", "2"],
  );
});

test("a machine that another pool holds is refused at once", async () => {
  const address = "192.0.2.2";
  const labels = { "kontinuum.sh/claimed-by": "other" };
  await addInstance(server.client, network, { namespace: systemNamespace, address, labels });
  await assert.rejects(
    addZone(server.client, network, { region: "eu", zone: "b", talosAddress: address }),
    (error) => isCoded(error, "conflict") && /pick a free machine/.test(error.message),
  );
});

/**
 * Quotas hold, whoever writes and however fast, and what is deleted is given back.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { waitFor } from "../services/service.ts";
import { Cluster, configMap, skip } from "./cluster.ts";

const cms = "/api/v1/namespaces/quota/configmaps";
const quotas = "/api/v1/namespaces/quota/resourcequotas";

describe("quotas", { skip }, () => {
  let c: Cluster;
  const n = ["-n", "quota"];
  const used = async (name: string, key: string): Promise<unknown> =>
    (await c.ask("GET", `${quotas}/${name}`)).at("status", "used", key);
  before(async () => {
    c = await Cluster.start();
    await c.namespace("quota");
    await c.ok([...n, "create", "quota", "few", "--hard=count/configmaps=5,pods=1,requests.cpu=1"]);
    // The namespace gets a ConfigMap of its own.
    await waitFor("the usage", async () =>
      (await used("few", "count/configmaps")) === "1" ? true : undefined,
    );
  });
  after(() => c.stop());

  test("twenty writers get the four places that are left", async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_value, index) => c.ask("POST", cms, { body: configMap(`many-${index}`) })),
    );
    assert.equal(answers.filter(({ status }) => status === 201).length, 4);
    const refused = answers.find(({ status }) => status === 403);
    assert.match(
      String(refused?.at("message")),
      /^configmaps "many-\d+" is forbidden: exceeded quota: few, requested: count\/configmaps=1, used: count\/configmaps=5, limited: count\/configmaps=5$/,
    );
  });

  test("what is deleted is given back", async () => {
    const names = (await c.ok([...n, "get", "cm", "-o", "name"]))
      .split("\n")
      .filter((name) => name.includes("many-"));
    await c.ok([...n, "delete", ...names]);
    await waitFor("the usage", async () =>
      (await used("few", "count/configmaps")) === "1" ? true : undefined,
    );
    assert.equal((await c.ask("POST", cms, { body: configMap("again") })).status, 201);
    assert.match(
      await c.ok([...n, "get", "quota", "few"]),
      /count\/configmaps: 2\/5, pods: 0\/1, requests.cpu: 0\/1/,
    );
  });

  test("a dry run books nothing", async () => {
    assert.equal((await c.ask("POST", `${cms}?dryRun=All`, { body: configMap("dry") })).status, 201);
    assert.equal(await used("few", "count/configmaps"), "2");
  });

  test("computing power must be asked for, and is limited", async () => {
    const pod = (name: string, cpu?: string): string =>
      JSON.stringify({
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name },
        spec: {
          containers: [
            { name: "a", image: "i", ...(cpu === undefined ? {} : { resources: { requests: { cpu } } }) },
          ],
        },
      });
    const create = (body: string): Promise<{ stderr: string }> => c.k([...n, "create", "-f", "-"], body);
    assert.match((await create(pod("silent"))).stderr, /failed quota: few: must specify requests.cpu for: a/);
    assert.match(
      (await create(pod("large", "2"))).stderr,
      /exceeded quota: few, requested: requests.cpu=2, used: requests.cpu=0, limited: requests.cpu=1/,
    );
    assert.equal((await create(pod("fits", "500m"))).stderr, "");
    assert.match(
      (await create(pod("second", "100m"))).stderr,
      /exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1/,
    );
  });
});

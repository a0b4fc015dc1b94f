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

  test("what comes into a quota's scope is counted there", async () => {
    await c.namespace("scopes");
    const url = "/api/v1/namespaces/scopes";
    const scoped = (name: string, hard: object, scopeName: string, values?: readonly string[]): object => ({
      metadata: { name },
      spec: {
        hard,
        scopeSelector: {
          matchExpressions: [
            { scopeName, operator: values ? "In" : "Exists", ...(values ? { values } : {}) },
          ],
        },
      },
    });
    const make = (body: object): Promise<unknown> => c.ask("POST", `${url}/resourcequotas`, { body });
    await make(scoped("ending", { pods: "1" }, "Terminating"));
    await make(scoped("gold", { persistentvolumeclaims: "1" }, "VolumeAttributesClass", ["gold"]));
    const usedBy = (name: string, key: string) => async (): Promise<true | undefined> =>
      (await c.ask("GET", `${url}/resourcequotas/${name}`)).at("status", "used", key) === "1"
        ? true
        : undefined;
    const pod = (name: string, seconds?: number): object => ({
      metadata: { name },
      spec: {
        containers: [{ name: "a", image: "i" }],
        ...(seconds === undefined ? {} : { activeDeadlineSeconds: seconds }),
      },
    });
    assert.equal((await c.ask("POST", `${url}/pods`, { body: pod("one") })).status, 201);
    const deadline = { spec: { activeDeadlineSeconds: 3600 } };
    const type = "application/merge-patch+json";
    assert.equal((await c.ask("PATCH", `${url}/pods/one`, { type, body: deadline })).status, 200);
    assert.equal((await c.ask("POST", `${url}/pods`, { body: pod("two", 3600) })).status, 403);
    await waitFor("the usage of pods", usedBy("ending", "pods"));
    const claim = (name: string, volumeAttributesClassName: string): object => ({
      metadata: { name },
      spec: {
        accessModes: ["ReadWriteOnce"],
        resources: { requests: { storage: "1Gi" } },
        volumeAttributesClassName,
      },
    });
    const claims = `${url}/persistentvolumeclaims`;
    assert.equal((await c.ask("POST", claims, { body: claim("a", "gold") })).status, 201);
    assert.equal((await c.ask("POST", claims, { body: claim("b", "gold") })).status, 403);
    assert.equal((await c.ask("POST", claims, { body: claim("c", "silver") })).status, 201);
    await waitFor("the usage of claims", usedBy("gold", "persistentvolumeclaims"));
  });
});

/**
 * K014–K029: objects, their metadata, errors, subresources, deletes.
 */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { at } from "@kontinuum/std";
import { waitFor } from "../services/service.ts";
import { Cluster, configMap, deployment, skip, widget, widgets } from "./cluster.ts";

const cms = "/api/v1/namespaces/kt/configmaps";
const wgs = "/apis/example.io/v1/namespaces/kt/widgets";
const deploys = "/apis/apps/v1/namespaces/kt/deployments";

describe("objects", { skip }, () => {
  let c: Cluster;
  const n = ["-n", "kt"];
  before(async () => {
    c = await Cluster.start();
    await c.ok(["apply", "-f", "-"], widgets);
    await c.ok(["wait", "--for=condition=established", "--timeout=5s", "crd/widgets.example.io"]);
    await c.namespace("kt");
  });
  after(() => c.stop());

  test("K014 AlreadyExists and NotFound", async () => {
    await c.ok([...n, "create", "cm", "a"]);
    assert.match((await c.k([...n, "create", "cm", "a"])).stderr, /configmaps "a" already exists/);
    assert.match(
      (await c.k([...n, "get", "deploy", "zz"])).stderr,
      /Error from server \(NotFound\): deployments\.apps "zz" not found/,
    );
  });

  test("streams into pods are refused in words kubectl repeats", async () => {
    await c.ok([...n, "run", "streams", "--image=i"]);
    for (const args of [
      ["exec", "streams", "--", "ls"],
      ["attach", "streams"],
    ]) {
      const ran = await c.k([...n, ...args]);
      assert.equal(ran.code, 1);
      assert.match(
        ran.stderr,
        /Error from server \(NotFound\): the server could not find the requested resource/,
      );
    }
  });

  test("K015 optimistic lock", async () => {
    await c.ok([...n, "create", "cm", "k15", "--from-literal=x=1"]);
    const yaml = await c.ok([...n, "get", "cm", "k15", "-o", "yaml"]);
    await c.ok([...n, "label", "cm", "k15", "x=1"]);
    const file = path.join(c.folder, "k15.yaml");
    await writeFile(file, yaml.replace('x: "1"', 'x: "2"'));
    assert.match(
      (await c.k([...n, "replace", "-f", file])).stderr,
      /\(Conflict\): .*Operation cannot be fulfilled on configmaps "k15": the object has been modified/,
    );
  });

  test("K016 generateName", async () => {
    const made = await c.ask("POST", cms, { body: { metadata: { generateName: "x-" } } });
    assert.equal(made.status, 201);
    assert.match(String(made.at("metadata", "name")), /^x-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
    const none = await c.ask("POST", cms, { body: { metadata: {} } });
    assert.equal(none.status, 422);
    assert.match(none.text, /name or generateName is required/);
  });

  test("K017 dry run", async () => {
    const yaml = await c.ok([...n, "create", "cm", "b17", "--dry-run=server", "-o", "yaml"]);
    assert.match(yaml, /uid: /);
    assert.match(yaml, /creationTimestamp: "/);
    assert.match((await c.k([...n, "get", "cm", "b17"])).stderr, /NotFound/);
  });

  test("K018 unknown fields", async () => {
    const body = (name: string) => deployment(name, ["a"], { replica: 1 });
    const strict = await c.k([...n, "create", "-f", "-"], JSON.stringify(body("d18")));
    assert.equal(strict.code, 1);
    assert.match(strict.stderr, /strict decoding error: unknown field "spec\.replica"/);
    const warned = await c.ask("POST", `${deploys}?fieldValidation=Warn`, { body: body("d18w") });
    assert.equal(warned.status, 201);
    assert.match(String(warned.headers["warning"]), /299 - "unknown field \\"spec\.replica\\""/);
    const ignored = await c.ask("POST", `${deploys}?fieldValidation=Ignore`, { body: body("d18i") });
    assert.equal(ignored.status, 201);
    assert.equal(ignored.headers["warning"], undefined);
  });

  test("K019 duplicate fields", async () => {
    const text = JSON.stringify(deployment("d19")).replace('"spec":{', '"spec":{"replicas":1,"replicas":2,');
    const answer = await c.ask("POST", `${deploys}?fieldValidation=Strict`, { body: text });
    assert.equal(answer.status, 400);
    assert.match(answer.text, /duplicate field \\"spec\.replicas\\"/);
  });

  test("K020 generation", async () => {
    const generation = async (): Promise<unknown> =>
      (await c.ask("GET", `${deploys}/d20`)).at("metadata", "generation");
    await c.ask("POST", deploys, { body: deployment("d20") });
    assert.equal(await generation(), 1);
    await c.ok([...n, "label", "deploy", "d20", "x=y"]);
    assert.equal(await generation(), 1);
    await c.ok([...n, "scale", "deploy", "d20", "--replicas=3"]);
    assert.equal(await generation(), 2);
    await c.ask("PATCH", `${deploys}/d20/status`, {
      type: "application/merge-patch+json",
      body: { status: { replicas: 3 } },
    });
    assert.equal(await generation(), 2);
    await c.ask("PATCH", `${deploys}/d20`, {
      type: "application/merge-patch+json",
      body: { metadata: { finalizers: ["example.io/f"] } },
    });
    await c.ask("DELETE", `${deploys}/d20`);
    assert.equal(await generation(), 3);
    await c.ask("PATCH", `${deploys}/d20`, {
      type: "application/merge-patch+json",
      body: { metadata: { finalizers: null } },
    });
  });

  test("K021 status is its own", async () => {
    await c.ask("POST", wgs, { body: widget("w21") });
    const patched = await c.ask("PATCH", `${wgs}/w21/status`, {
      type: "application/merge-patch+json",
      body: { spec: { replicas: 9 }, status: { replicas: 2 } },
    });
    assert.equal(patched.status, 200);
    assert.equal(patched.at("spec", "replicas"), 1);
    assert.equal(patched.at("status", "replicas"), 2);
    assert.equal(patched.at("metadata", "generation"), 1);
    const put = await c.ask("PUT", `${wgs}/w21`, {
      body: { ...(patched.json as object), status: { replicas: 7 } },
    });
    assert.equal(put.at("status", "replicas"), 2);
  });

  test("K022 scale", async () => {
    await c.ask("POST", deploys, { body: deployment("d22") });
    await c.ask("POST", wgs, { body: widget("w22") });
    assert.match(await c.ok([...n, "scale", "deploy", "d22", "--replicas=3"]), /scaled/);
    assert.match(await c.ok([...n, "scale", "wg", "w22", "--replicas=4"]), /scaled/);
    assert.equal((await c.ask("GET", `${deploys}/d22`)).at("spec", "replicas"), 3);
    const scale = JSON.parse(await c.ok(["get", "--raw", `${wgs}/w22/scale`])) as unknown;
    assert.equal(at(scale, "kind"), "Scale");
    assert.equal(at(scale, "apiVersion"), "autoscaling/v1");
    assert.equal(at(scale, "spec", "replicas"), 4);
  });

  test("K023 names and labels", async () => {
    assert.match(
      (await c.k([...n, "create", "cm", "Bad_Name"])).stderr,
      /a lowercase RFC 1123 subdomain must consist of/,
    );
    const long = await c.ask("POST", cms, { body: configMap("l23", {}, { labels: { a: "x".repeat(64) } }) });
    assert.equal(long.status, 422);
    assert.match(long.text, /must be no more than 63/);
  });

  test("K024 place of the body", async () => {
    const other = await c.ask("POST", cms, { body: configMap("a24", {}, { namespace: "other" }) });
    assert.equal(other.status, 400);
    assert.match(
      other.text,
      /the namespace of the provided object does not match the namespace sent on the request/,
    );
    assert.equal((await c.ask("PUT", `${cms}/a24`, { body: configMap("b24") })).status, 400);
  });

  test("K025 finalizers", async () => {
    await c.ask("POST", cms, { body: configMap("f25", {}, { finalizers: ["example.io/f"] }) });
    const watch = await c.watch(`${cms}?watch=1&fieldSelector=metadata.name%3Df25`);
    await c.ok([...n, "delete", "cm", "f25", "--wait=false"]);
    const marked = await c.ask("GET", `${cms}/f25`);
    assert.ok(marked.at("metadata", "deletionTimestamp"));
    assert.equal(marked.at("metadata", "deletionGracePeriodSeconds"), 0);
    await c.ask("PATCH", `${cms}/f25`, {
      type: "application/merge-patch+json",
      body: { metadata: { finalizers: null } },
    });
    assert.equal((await c.ask("GET", `${cms}/f25`)).status, 404);
    await watch.next(({ type }) => type === "DELETED");
    assert.deepEqual(
      watch.events.map(({ type }) => type),
      ["ADDED", "MODIFIED", "DELETED"],
    );
    watch.close();
  });

  test("K026 preconditions", async () => {
    const made = await c.ask("POST", cms, { body: configMap("p26") });
    const wrong = await c.ask("DELETE", `${cms}/p26`, { body: { preconditions: { uid: "nope" } } });
    assert.equal(wrong.status, 409);
    assert.match(wrong.text, /the UID in the precondition/);
    const right = await c.ask("DELETE", `${cms}/p26`, {
      body: { preconditions: { uid: made.at("metadata", "uid") } },
    });
    assert.equal(right.status, 200);
    assert.equal(right.at("status"), "Success");
    assert.equal(right.at("details", "uid"), made.at("metadata", "uid"));
    assert.equal(right.at("details", "kind"), "configmaps");
  });

  test("K027 unconditional updates", async () => {
    await c.ask("POST", cms, { body: configMap("u27") });
    assert.equal((await c.ask("PUT", `${cms}/u27`, { body: configMap("u27", { a: "b" }) })).status, 200);
    await c.ask("POST", wgs, { body: widget("u27") });
    const put = await c.ask("PUT", `${wgs}/u27`, { body: widget("u27", { replicas: 2 }) });
    assert.equal(put.status, 422);
    assert.match(put.text, /must be specified for an update/);
  });

  test("K028 a change of nothing", async () => {
    const made = await c.ask("POST", cms, { body: configMap("n28", { a: "b" }) });
    const version = String(made.at("metadata", "resourceVersion"));
    const watch = await c.watch(
      `${cms}?watch=1&resourceVersion=${version}&fieldSelector=metadata.name%3Dn28`,
    );
    const put = await c.ask("PUT", `${cms}/n28`, { body: made.json });
    assert.equal(put.status, 200);
    assert.equal(put.at("metadata", "resourceVersion"), version);
    // An event that had been caused would arrive before that of a later write.
    await c.ask("PATCH", `${cms}/n28`, { type: "application/merge-patch+json", body: { data: { a: "c" } } });
    await waitFor("the real change", () => watch.events.length > 0);
    assert.equal(at(watch.events[0]?.object, "data", "a"), "c");
    watch.close();
  });

  test("K029 deletecollection", async () => {
    for (const name of ["c1", "c2"])
      await c.ask("POST", cms, { body: configMap(name, {}, { labels: { del: "b" } }) });
    await c.ask("POST", cms, { body: configMap("c3", {}, { labels: { del: "c" } }) });
    const answer = await c.ask("DELETE", `${cms}?labelSelector=del%3Db`);
    assert.equal(answer.status, 200);
    assert.equal(answer.at("kind"), "ConfigMapList");
    for (const [name, status] of [
      ["c1", 404],
      ["c2", 404],
      ["c3", 200],
    ] as const)
      assert.equal((await c.ask("GET", `${cms}/${name}`)).status, status);
  });
});

/**
 * K001–K013: the wire, discovery, OpenAPI.
 */
import assert from "node:assert/strict";
import { gunzipSync } from "node:zlib";
import { after, before, describe, test } from "node:test";
import { at, isObject } from "@kontinuum/std";
import { waitFor } from "../services/service.ts";
import { Cluster, configMap, deployment, skip, widget, widgets } from "./cluster.ts";

const aggregatedAccept =
  "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

describe("wire and discovery", { skip }, () => {
  let c: Cluster;
  before(async () => {
    c = await Cluster.start();
    await c.ok(["apply", "-f", "-"], widgets);
    await c.ok(["wait", "--for=condition=established", "--timeout=5s", "crd/widgets.example.io"]);
    await c.namespace("kt");
  });
  after(() => c.stop());

  test("K001 version", async () => {
    const ran = await c.k(["version"]);
    assert.equal(ran.code, 0);
    assert.match(ran.stdout, /Server Version: v1\.35\./);
    assert.doesNotMatch(ran.stdout + ran.stderr, /WARNING/);
    const answer = await c.ask("GET", "/version", { token: null });
    const fields = [
      "major",
      "minor",
      "emulationMajor",
      "emulationMinor",
      "minCompatibilityMajor",
      "minCompatibilityMinor",
      "gitVersion",
      "gitCommit",
      "gitTreeState",
      "buildDate",
      "goVersion",
      "compiler",
      "platform",
    ];
    for (const field of fields) assert.equal(typeof answer.at(field), "string", field);
  });

  test("K002 health without credentials", async () => {
    for (const endpoint of ["livez", "readyz", "healthz"]) {
      for (const token of [null, undefined]) {
        const answer = await c.ask("GET", `/${endpoint}`, token === null ? { token } : {});
        assert.equal(answer.status, 200);
        assert.equal(answer.text, "ok");
      }
    }
    const verbose = (await c.ask("GET", "/readyz?verbose", { token: null })).text.trimEnd().split("\n");
    assert.equal(verbose.at(-1), "readyz check passed");
    for (const line of verbose.slice(0, -1)) assert.match(line, /^\[\+\].+ ok$/);
  });

  test("K003 aggregated discovery with a tag", async () => {
    for (const root of ["/apis", "/api"]) {
      const first = await c.ask("GET", root, { headers: { accept: aggregatedAccept } });
      const type = String(first.headers["content-type"]);
      for (const part of ["g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"])
        assert.ok(type.includes(part), type);
      const tag = String(first.headers["etag"]);
      const again = await c.ask("GET", root, { headers: { accept: aggregatedAccept, "if-none-match": tag } });
      assert.equal(again.status, 304);
      assert.equal(again.bytes.length, 0);
    }
    const before = String(
      (await c.ask("GET", "/apis", { headers: { accept: aggregatedAccept } })).headers["etag"],
    );
    await c.ok(["apply", "-f", "-"], widgets.replaceAll("example.io", "other.io"));
    await c.ok(["wait", "--for=condition=established", "--timeout=5s", "crd/widgets.other.io"]);
    const changed = await c.ask("GET", "/apis", {
      headers: { accept: aggregatedAccept, "if-none-match": before },
    });
    assert.equal(changed.status, 200);
    assert.notEqual(changed.headers["etag"], before);
    await c.ok(["delete", "crd", "widgets.other.io"]);
  });

  test("K004 legacy discovery", async () => {
    assert.equal(
      (await c.ask("GET", "/apis", { headers: { accept: "application/json" } })).at("kind"),
      "APIGroupList",
    );
    const resources = (await c.ask("GET", "/apis/apps/v1")).at("resources");
    assert.ok(Array.isArray(resources));
    const scale: unknown = resources.find(
      (resource: unknown) => at(resource, "name") === "deployments/scale",
    );
    assert.equal(at(scale, "group"), "autoscaling");
    assert.equal(at(scale, "kind"), "Scale");
  });

  test("K005 api-resources", async () => {
    const names = await c.ok(["api-resources", "-o", "name"]);
    for (const name of [
      "configmaps",
      "pods",
      "deployments.apps",
      "cronjobs.batch",
      "leases.coordination.k8s.io",
      "flowschemas.flowcontrol.apiserver.k8s.io",
      "widgets.example.io",
    ]) {
      assert.ok(names.split("\n").includes(name), name);
    }
    const wide = await c.ok(["api-resources", "-o", "wide", "--api-group=example.io"]);
    assert.match(wide, /create,delete,deletecollection,get,list,patch,update,watch\s+all/);
  });

  test("K006 categories and short names", async () => {
    await c.ok(["-n", "kt", "create", "-f", "-"], JSON.stringify(deployment("d6")));
    await c.ok(["-n", "kt", "create", "-f", "-"], JSON.stringify(widget("w6")));
    const all = await c.ok(["-n", "kt", "get", "all", "-o", "name"]);
    assert.match(all, /deployment\.apps\/d6/);
    assert.match(all, /widget\.example\.io\/w6/);
    assert.match(
      await c.ok(["-n", "kt", "get", "wg,deploy", "-o", "name"]),
      /widget\.example\.io\/w6\ndeployment\.apps\/d6/,
    );
  });

  test("K007 explain", async () => {
    const strategy = await c.ok(["explain", "deployment.spec.strategy"]);
    assert.match(strategy, /rollingUpdate/);
    assert.match(strategy, /DESCRIPTION:\n\s+\S/);
    const spec = await c.ok(["explain", "wg.spec", "--recursive"]);
    for (const field of ["replicas", "ports", "protocol"]) assert.match(spec, new RegExp(`\\b${field}\\b`));
    const wrong = await c.k(["explain", "wg.nope"]);
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /field "nope" does not exist/);
  });

  test("K008 OpenAPI v3", async () => {
    const paths = (await c.ask("GET", "/openapi/v3")).at("paths");
    assert.ok(isObject(paths));
    for (const entry of Object.values(paths)) assert.match(String(at(entry, "serverRelativeURL")), /hash=/);
    const url = String(at(paths, "apis/apps/v1", "serverRelativeURL"));
    const document = await c.ask("GET", url);
    assert.equal(document.status, 200);
    assert.match(String(document.headers["cache-control"]), /immutable/);
    const last = url.at(-1) === "0" ? "1" : "0";
    const stale = await c.ask("GET", url.slice(0, -1) + last);
    assert.equal(stale.status, 301);
    assert.equal(stale.headers["location"], url);
  });

  test("K009 OpenAPI v2", async () => {
    const document = await c.ask("GET", "/openapi/v2");
    assert.equal(
      document.at(
        "definitions",
        "io.k8s.api.apps.v1.Deployment",
        "x-kubernetes-group-version-kind",
        0,
        "kind",
      ),
      "Deployment",
    );
    const containers = document.at("definitions", "io.k8s.api.core.v1.PodSpec", "properties", "containers");
    assert.equal(at(containers, "x-kubernetes-patch-merge-key"), "name");
    const proto = await c.ask("GET", "/openapi/v2", {
      headers: { accept: "application/com.github.proto-openapi.spec.v2@v1.0+protobuf" },
    });
    assert.ok(proto.status === 406 || String(proto.headers["content-type"]).includes("protobuf"));
  });

  test("K010 typed creates send protobuf", async () => {
    const n = ["-n", "kt"];
    await c.ok([...n, "create", "configmap", "p1", "--from-literal=k=v"]);
    await c.ok([...n, "create", "secret", "generic", "p2", "--from-literal=k=v"]);
    await c.ok([...n, "create", "job", "p3", "--image=i", "--", "true"]);
    await c.ok([...n, "create", "cronjob", "p4", "--image=i", "--schedule=*/5 * * * *"]);
    await c.ok([...n, "create", "role", "p5", "--verb=get,list", "--resource=pods"]);
    await c.ok(["create", "clusterrole", "p6", "--verb=get", "--resource=nodes"]);
    await c.ok([...n, "create", "rolebinding", "p7", "--role=p5", "--user=u"]);
    await c.ok([...n, "create", "serviceaccount", "p8"]);
    await c.ok(["create", "namespace", "p9"]);
    await c.ok([...n, "create", "quota", "p10", "--hard=pods=3,services=1"]);
    await c.ok([...n, "create", "deployment", "p11", "--image=i"]);
    await c.ok([...n, "autoscale", "deployment", "p11", "--max=3"]);
    assert.match(await c.ok([...n, "get", "secret", "p2", "-o", "yaml"]), /k: dg==/);
    assert.match(await c.ok([...n, "get", "cronjob", "p4", "-o", "yaml"]), /schedule: '?\*\/5 \* \* \* \*'?/);
    assert.match(await c.ok([...n, "get", "quota", "p10", "-o", "yaml"]), /pods: "3"/);
    assert.match(await c.ok([...n, "get", "hpa", "p11", "-o", "yaml"]), /maxReplicas: 3/);
    assert.match(await c.ok([...n, "get", "rolebinding", "p7", "-o", "yaml"]), /name: p5/);
  });

  test("K011 media types", async () => {
    const url = "/api/v1/namespaces/kt/configmaps";
    const cbor = await c.ask("POST", url, { body: configMap("cbor"), type: "application/cbor" });
    assert.equal(cbor.status, 415);
    assert.equal(cbor.at("reason"), "UnsupportedMediaType");
    const html = await c.ask("GET", url, { headers: { accept: "text/html" } });
    assert.equal(html.status, 406);
    assert.equal(html.at("reason"), "NotAcceptable");
  });

  test("K012 gzip for large lists, never for watches", async () => {
    await c.namespace("big");
    const url = "/api/v1/namespaces/big/configmaps";
    for (let i = 0; i < 8; i++)
      await c.ask("POST", url, { body: configMap(`b${i}`, { k: "x".repeat(32 * 1024) }) });
    const plain = await c.ask("GET", url);
    const zipped = await c.ask("GET", url, { headers: { "accept-encoding": "gzip" } });
    assert.equal(zipped.headers["content-encoding"], "gzip");
    assert.ok(zipped.bytes.length < plain.bytes.length / 5);
    assert.deepEqual(JSON.parse(gunzipSync(zipped.bytes).toString()), plain.json);
    const watch = await c.watch(`${url}?watch=1`, { headers: { "accept-encoding": "gzip" } });
    await waitFor("initial events", () => watch.events.length >= 8);
    watch.close();
  });

  test("a request may bound its own time", async () => {
    const url = "/api/v1/namespaces/kt/configmaps";
    for (const wrong of ["invalid", "-1s", "5"]) {
      const answer = await c.ask("GET", `${url}?timeout=${wrong}`);
      assert.equal(answer.status, 400);
      assert.match(String(answer.at("message")), /^invalid timeout specified in the request URL/);
    }
    for (const right of ["0s", "3m", "1.5s"])
      assert.equal((await c.ask("GET", `${url}?timeout=${right}`)).status, 200);
  });

  test("K013 too large, unknown paths", async () => {
    const large = await c
      .ask("POST", "/api/v1/namespaces/kt/configmaps", {
        body: configMap("large", { k: "x".repeat(4 * 1024 * 1024) }),
      })
      .catch((error: unknown) => error);
    // The server may cut a body that nobody will read; then the client sees the reset instead of the answer.
    if (!(large instanceof Error)) assert.equal((large as { status: number }).status, 413);
    assert.equal((await c.ask("GET", "/api/v1/namespaces/kt")).status, 200);
    assert.equal((await c.ask("GET", "/nope")).status, 404);
    const raw = await c.k(["get", "--raw", "/apis/nope.io/v1/x"]);
    assert.match(
      raw.stderr,
      /Error from server \(NotFound\): the server could not find the requested resource/,
    );
  });
});

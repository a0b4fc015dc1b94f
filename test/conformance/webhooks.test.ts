/**
 * K076, K077, K082 and conversion webhooks: other servers that take part in a request.
 */
import assert from "node:assert/strict";
import https from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import { after, before, describe, test } from "node:test";
import { at, isObject } from "@kontinuum/std";
import { waitFor } from "../services/service.ts";
import { Cluster, configMap, deployment, selfSigned, skip, widget, widgets } from "./cluster.ts";

const cms = "/api/v1/namespaces/kt/configmaps";
const merge = "application/merge-patch+json";

/** A small HTTPS server; `answer` gets the parsed body. */
async function startBackend(
  answer: (request: IncomingMessage, body: unknown, response: ServerResponse) => void,
) {
  const { cert, key } = await selfSigned();
  const server = https.createServer({ cert, key }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString();
      answer(request, text === "" ? undefined : JSON.parse(text), response);
    });
  });
  const listen = (port: number): Promise<void> =>
    new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  await listen(0);
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    port,
    caBundle: Buffer.from(cert).toString("base64"),
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

type Backend = Awaited<ReturnType<typeof startBackend>>;

const send = (response: ServerResponse, value: unknown): void => {
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(value));
};

describe("webhooks, policies, aggregated APIs", { skip }, () => {
  let c: Cluster;
  let backend: Backend;
  let api: Backend;
  const seen: { path: string; headers: IncomingMessage["headers"] }[] = [];
  before(async () => {
    backend = await startBackend((request, body, response) => {
      if (request.url?.startsWith("/convert")) return send(response, convert(body));
      const uid = at(body, "request", "uid");
      const review = (more: object): void =>
        send(response, {
          apiVersion: "admission.k8s.io/v1",
          kind: "AdmissionReview",
          response: { uid, ...more },
        });
      if (request.url?.startsWith("/mutate")) {
        const patch = [{ op: "add", path: "/metadata/labels", value: { touched: "yes" } }];
        return review({
          allowed: true,
          patchType: "JSONPatch",
          patch: Buffer.from(JSON.stringify(patch)).toString("base64"),
          warnings: ["a word of warning"],
        });
      }
      const bad = at(body, "request", "object", "data", "bad") !== undefined;
      return review(bad ? { allowed: false, status: { message: "no" } } : { allowed: true });
    });
    api = await startBackend((request, _body, response) => {
      seen.push({ path: request.url ?? "", headers: request.headers });
      const url = request.url ?? "";
      if (url === "/apis/agg.io/v1") {
        return send(response, {
          kind: "APIResourceList",
          apiVersion: "v1",
          groupVersion: "agg.io/v1",
          resources: [
            {
              name: "things",
              singularName: "thing",
              namespaced: true,
              kind: "Thing",
              verbs: ["get", "list", "watch"],
            },
          ],
        });
      }
      if (url.includes("/things"))
        return send(response, {
          kind: "ThingList",
          apiVersion: "agg.io/v1",
          metadata: { resourceVersion: "1" },
          items: [{ kind: "Thing", apiVersion: "agg.io/v1", metadata: { name: "one", namespace: "kt" } }],
        });
      response.statusCode = 404;
      response.end();
    });
    c = await Cluster.start({
      outboundAllowed: ["127.0.0.0/8"],
      resolveService: (_namespace, name) =>
        Promise.resolve(name === "agg" ? { host: "127.0.0.1", port: api.port } : undefined),
    });
    await c.namespace("kt");
  });
  after(async () => {
    await c.stop();
    await backend.stop();
    await api.stop();
  });

  function convert(body: unknown): unknown {
    const request = at(body, "request");
    const objects = at(request, "objects");
    const convertedObjects = (Array.isArray(objects) ? objects : []).map((object: unknown) => {
      if (!isObject(object)) return object;
      const spec = isObject(object["spec"]) ? object["spec"] : {};
      const toV1 = String(at(request, "desiredAPIVersion")).endsWith("/v1");
      const { replicas, count, ...rest } = spec;
      return {
        ...object,
        apiVersion: at(request, "desiredAPIVersion"),
        spec: toV1 ? { ...rest, replicas: replicas ?? count } : { ...rest, count: count ?? replicas },
      };
    });
    return {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "ConversionReview",
      response: { uid: at(request, "uid"), result: { status: "Success" }, convertedObjects },
    };
  }

  const hook = (kind: string, name: string, path: string, more: object = {}) => ({
    apiVersion: "admissionregistration.k8s.io/v1",
    kind,
    metadata: { name },
    webhooks: [
      {
        name: `${name}.example.io`,
        admissionReviewVersions: ["v1"],
        sideEffects: "None",
        clientConfig: { url: `https://127.0.0.1:${backend.port}${path}`, caBundle: backend.caBundle },
        rules: [
          {
            operations: ["CREATE", "UPDATE"],
            apiGroups: [""],
            apiVersions: ["v1"],
            resources: ["configmaps"],
          },
        ],
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "kt" } },
        ...more,
      },
    ],
  });

  test("K076 webhooks", async () => {
    const root = "/apis/admissionregistration.k8s.io/v1";
    assert.equal(
      (
        await c.ask("POST", `${root}/mutatingwebhookconfigurations`, {
          body: hook("MutatingWebhookConfiguration", "m", "/mutate"),
        })
      ).status,
      201,
    );
    assert.equal(
      (
        await c.ask("POST", `${root}/validatingwebhookconfigurations`, {
          body: hook("ValidatingWebhookConfiguration", "v", "/validate"),
        })
      ).status,
      201,
    );
    const made = await waitFor("the webhook", async () => {
      const answer = await c.ask("POST", cms, { body: { metadata: { generateName: "h-" } } });
      return answer.at("metadata", "labels", "touched") === "yes" && answer;
    });
    assert.match(String(made.headers["warning"]), /a word of warning/);
    const denied = await c.k(["-n", "kt", "create", "cm", "bad", "--from-literal=bad=1"]);
    assert.match(denied.stderr, /admission webhook "v\.example\.io" denied the request: no/);
    // Nothing listens there: Fail refuses, Ignore lets it pass.
    const closed = { clientConfig: { url: "https://127.0.0.1:1/x", caBundle: backend.caBundle } };
    await c.ask("PUT", `${root}/validatingwebhookconfigurations/v`, {
      body: hook("ValidatingWebhookConfiguration", "v", "/x", closed),
    });
    await waitFor("the change", async () => {
      const answer = await c.ask("POST", cms, { body: { metadata: { generateName: "h-" } } });
      return answer.status === 500 && /failed calling webhook \\"v\.example\.io\\"/.test(answer.text);
    });
    await c.ask("PUT", `${root}/validatingwebhookconfigurations/v`, {
      body: hook("ValidatingWebhookConfiguration", "v", "/x", { ...closed, failurePolicy: "Ignore" }),
    });
    await waitFor(
      "the change",
      async () => (await c.ask("POST", cms, { body: { metadata: { generateName: "h-" } } })).status === 201,
    );
    // A dead webhook never blocks its own removal.
    await c.ok(["delete", "validatingwebhookconfiguration", "v"]);
    await c.ok(["delete", "mutatingwebhookconfiguration", "m"]);
  });

  test("K077 validating admission policies", async () => {
    const policy = {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingAdmissionPolicy",
      metadata: { name: "p" },
      spec: {
        matchConstraints: {
          resourceRules: [
            {
              apiGroups: ["apps"],
              apiVersions: ["v1"],
              operations: ["CREATE", "UPDATE"],
              resources: ["deployments"],
            },
          ],
        },
        validations: [{ expression: "object.spec.replicas <= 5" }],
      },
    };
    const binding = (actions: string[]) => ({
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingAdmissionPolicyBinding",
      metadata: { name: "b" },
      spec: { policyName: "p", validationActions: actions },
    });
    const root = "/apis/admissionregistration.k8s.io/v1";
    const url = "/apis/apps/v1/namespaces/kt/deployments";
    assert.equal((await c.ask("POST", `${root}/validatingadmissionpolicies`, { body: policy })).status, 201);
    assert.equal(
      (await c.ask("POST", url, { body: deployment("free", ["a"], { replicas: 6 }) })).status,
      201,
    );
    const bound = await c.ask("POST", `${root}/validatingadmissionpolicybindings`, {
      body: binding(["Deny"]),
    });
    assert.equal(bound.status, 201, bound.text);
    const refused = await waitFor(
      "the refusal",
      async () => {
        const answer = await c.ask("POST", `${url}?dryRun=All`, {
          body: deployment("six", ["a"], { replicas: 6 }),
        });
        return answer.status !== 201 && answer;
      },
      3000,
    );
    assert.equal(refused.status, 422);
    assert.match(
      String(refused.at("message")),
      /ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: object\.spec\.replicas <= 5/,
    );
    assert.equal(
      (await c.ask("POST", url, { body: deployment("five", ["a"], { replicas: 5 }) })).status,
      201,
    );
    await c.ask("PATCH", `${root}/validatingadmissionpolicybindings/b`, {
      type: merge,
      body: { spec: { validationActions: ["Warn"] } },
    });
    const warned = await waitFor(
      "the warning",
      async () => {
        const answer = await c.ask("POST", `${url}?dryRun=All`, {
          body: deployment("six", ["a"], { replicas: 6 }),
        });
        return answer.status === 201 && answer;
      },
      3000,
    );
    assert.match(
      String(warned.headers["warning"]),
      /Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b'/,
    );
  });

  test("conversion by webhook", async () => {
    const v2 = `
  - name: v2
    served: true
    storage: false
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {url: "https://127.0.0.1:${backend.port}/convert", caBundle: "${backend.caBundle}"}
`;
    await c.ok(
      ["apply", "-f", "-"],
      widgets.trimEnd().replace(/ {2}- name: v1beta1[\s\S]*$/, v2.trimStart().replace(/^- /, "  - ")),
    );
    await c.ok(["wait", "--for=condition=established", "--timeout=5s", "crd/widgets.example.io"]);
    const made = await c.ask("POST", "/apis/example.io/v1/namespaces/kt/widgets", {
      body: widget("w", { replicas: 3 }),
    });
    assert.equal(made.status, 201, made.text);
    const two = await c.ask("GET", "/apis/example.io/v2/namespaces/kt/widgets/w");
    assert.equal(two.status, 200, two.text);
    assert.equal(two.at("spec", "count"), 3);
    assert.equal(two.at("spec", "replicas"), undefined);
    await c.ask("PATCH", "/apis/example.io/v2/namespaces/kt/widgets/w", {
      type: merge,
      body: { spec: { count: 4 } },
    });
    assert.equal(
      (await c.ask("GET", "/apis/example.io/v1/namespaces/kt/widgets/w")).at("spec", "replicas"),
      4,
    );
    const list = await c.ask("GET", "/apis/example.io/v2/widgets");
    assert.equal(list.at("items", 0, "spec", "count"), 4);
  });

  test("K082 an aggregated API", async () => {
    const service = {
      apiVersion: "apiregistration.k8s.io/v1",
      kind: "APIService",
      metadata: { name: "v1.agg.io" },
      spec: {
        group: "agg.io",
        version: "v1",
        groupPriorityMinimum: 1000,
        versionPriority: 15,
        service: { namespace: "kt", name: "agg" },
        insecureSkipTLSVerify: true,
      },
    };
    const posted = await c.ask("POST", "/apis/apiregistration.k8s.io/v1/apiservices", { body: service });
    assert.equal(posted.status, 201, posted.text);
    await c.ok(["wait", "--for=condition=Available", "apiservice/v1.agg.io", "--timeout=10s"]);
    assert.match(await c.ok(["get", "apiservice", "v1.agg.io"]), /kt\/agg\s+True/);
    assert.match(await c.ok(["-n", "kt", "get", "things.agg.io", "-o", "name"]), /thing\.agg\.io\/one/);
    const proxied = seen.find(({ path }) => path.includes("/things"));
    assert.equal(proxied?.headers["x-remote-user"], "admin");
    assert.equal(proxied?.headers.authorization, undefined);
    await api.stop();
    assert.equal((await c.ask("GET", "/apis/agg.io/v1/namespaces/kt/things")).status, 503);
    await waitFor(
      "Available False",
      async () => (await c.ok(["get", "apiservice", "v1.agg.io"])).includes("False"),
      40_000,
    );
    assert.equal((await c.ask("GET", "/apis/agg.io/v1/namespaces/kt/things")).status, 503);
    assert.equal((await c.ask("GET", cms)).status, 200);
    await c.ok(["delete", "apiservice", "v1.agg.io"]);
  });

  test("local APIServices", async () => {
    await waitFor("the core's", async () =>
      /v1\.apps\s+Local\s+True/.test(await c.ok(["get", "apiservice", "v1.apps"])),
    );
    assert.equal((await c.ask("GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1.")).status, 200);
  });

  test("the server does not call its own loopback unless allowed", async () => {
    const other = await Cluster.start();
    try {
      const body = hook("ValidatingWebhookConfiguration", "v", "/validate", { namespaceSelector: {} });
      await other.ask("POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {
        body,
      });
      const answer = await waitFor("the refusal", async () => {
        const made = await other.ask("POST", "/api/v1/namespaces/default/configmaps", {
          body: configMap(`x${Date.now()}`),
        });
        return made.status === 500 && made;
      });
      assert.match(answer.text, /calls to 127\.0\.0\.1 are refused/);
    } finally {
      await other.stop();
    }
  });
});

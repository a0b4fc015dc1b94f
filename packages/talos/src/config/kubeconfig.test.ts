/**
 * Kubeconfigs and talosconfigs: what is minted can be read, and what a node sends is taken apart.
 */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { isCoded, systemEdges } from "@kontinuum/std";
import fc from "fast-check";
import { parse, stringify } from "yaml";
import { parseSecretsBundle } from "../pki/secrets-bundle.ts";
import { official } from "../testing/official.ts";
import { generateAdminKubeconfig, parseNodeKubeconfig } from "./kubeconfig.ts";
import { generateTalosconfig, parseTalosconfig } from "./talosconfig.ts";

const edges = systemEdges();
const bundle = parseSecretsBundle(official("machine-config/stability/secrets.yaml"));
const endpoint = "https://192.0.2.10:6443";
const minted = await generateAdminKubeconfig({ bundle, endpoint, clusterName: "demo", edges });

test("a minted kubeconfig has the layout of a node's and a certificate of the cluster's CA", () => {
  const config = parse(minted);
  assert.equal(config["current-context"], "admin@demo");
  assert.deepEqual(config.contexts, [
    { context: { cluster: "demo", namespace: "default", user: "admin@demo" }, name: "admin@demo" },
  ]);
  const access = parseNodeKubeconfig(minted, { endpoint });
  assert.equal(access.server, endpoint);
  assert(new X509Certificate(access.cert).verify(new X509Certificate(bundle.certs.k8s.crt).publicKey));
});

test("rule 11: from a node only server, CA and client certificate are taken", () => {
  const changed = (change: (config: ReturnType<typeof parse>) => void): string => {
    const config = parse(minted);
    change(config);
    return stringify(config);
  };
  const refused: [string, (config: ReturnType<typeof parse>) => void][] = [
    ["exec", (c) => (c.users[0].user.exec = { command: "/bin/sh" })],
    ["auth-provider", (c) => (c.users[0].user["auth-provider"] = { name: "x" })],
    ["token file", (c) => (c.users[0].user.tokenFile = "/etc/passwd")],
    ["key file", (c) => (c.users[0].user["client-key"] = "/etc/passwd")],
    ["CA file", (c) => (c.clusters[0].cluster["certificate-authority"] = "/etc/passwd")],
    ["proxy", (c) => (c.clusters[0].cluster["proxy-url"] = "http://evil")],
    ["insecure", (c) => (c.clusters[0].cluster["insecure-skip-tls-verify"] = true)],
    ["server name", (c) => (c.clusters[0].cluster["tls-server-name"] = "evil")],
    ["another server", (c) => (c.clusters[0].cluster.server = "https://198.51.100.1:6443")],
    ["user info", (c) => (c.clusters[0].cluster.server = "https://x@192.0.2.10:6443")],
    ["no context", (c) => delete c["current-context"]],
    ["no key", (c) => delete c.users[0].user["client-key-data"]],
    ["no certificate", (c) => (c.users[0].user["client-certificate-data"] = "AAAA")],
  ];
  for (const [name, change] of refused) {
    assert.throws(
      () => parseNodeKubeconfig(changed(change), { endpoint }),
      (error) => isCoded(error, "invalid_argument"),
      name,
    );
  }
});

test("any text is a kubeconfig or refused", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      assert.throws(
        () => parseNodeKubeconfig(text, { endpoint }),
        (error) => isCoded(error, "invalid_argument"),
      );
      assert.throws(
        () => parseTalosconfig(text),
        (error) => isCoded(error, "invalid_argument"),
      );
    }),
  );
});

test("a talosconfig is read back with credentials that work", async () => {
  const text = await generateTalosconfig({
    bundle,
    clusterName: "demo",
    endpoints: ["192.0.2.10"],
    nodes: ["192.0.2.11"],
    edges,
  });
  const context = parseTalosconfig(text);
  assert.equal(context.name, "demo");
  assert.deepEqual([context.endpoints, context.nodes], [["192.0.2.10"], ["192.0.2.11"]]);
  const certificate = new X509Certificate(context.credentials.cert);
  assert.equal(certificate.subject, "O=os:admin");
  assert(certificate.verify(new X509Certificate(bundle.certs.os.crt).publicKey));
  assert.throws(() => parseTalosconfig(text, "other"), /no context "other"/);
});

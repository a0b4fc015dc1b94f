/**
 * K061 and what a client sees of every built-in kind: columns, defaults that settle, both wire forms, explain.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { at, isObject } from "@kontinuum/std";
import { parseAllDocuments } from "yaml";
import { Cluster, skip } from "./cluster.ts";

/** Resource to the header of `kubectl get -o wide`; words in brackets are those of the wide form. */
const headers: Readonly<Record<string, string>> = {
  pods: "NAME READY STATUS RESTARTS AGE [IP NODE NOMINATED NODE READINESS GATES]",
  replicationcontrollers: "NAME DESIRED CURRENT READY AGE [CONTAINERS IMAGES SELECTOR]",
  "replicasets.apps": "NAME DESIRED CURRENT READY AGE [CONTAINERS IMAGES SELECTOR]",
  "deployments.apps": "NAME READY UP-TO-DATE AVAILABLE AGE [CONTAINERS IMAGES SELECTOR]",
  "statefulsets.apps": "NAME READY AGE [CONTAINERS IMAGES]",
  "daemonsets.apps":
    "NAME DESIRED CURRENT READY UP-TO-DATE AVAILABLE NODE SELECTOR AGE [CONTAINERS IMAGES SELECTOR]",
  "jobs.batch": "NAME STATUS COMPLETIONS DURATION AGE [CONTAINERS IMAGES SELECTOR]",
  "cronjobs.batch": "NAME SCHEDULE TIMEZONE SUSPEND ACTIVE LAST SCHEDULE AGE [CONTAINERS IMAGES SELECTOR]",
  services: "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE [SELECTOR]",
  "ingresses.networking.k8s.io": "NAME CLASS HOSTS ADDRESS PORTS AGE",
  "ingressclasses.networking.k8s.io": "NAME CONTROLLER PARAMETERS AGE",
  endpoints: "NAME ENDPOINTS AGE",
  "endpointslices.discovery.k8s.io": "NAME ADDRESSTYPE PORTS ENDPOINTS AGE",
  nodes: "NAME STATUS ROLES AGE VERSION [INTERNAL-IP EXTERNAL-IP OS-IMAGE KERNEL-VERSION CONTAINER-RUNTIME]",
  namespaces: "NAME STATUS AGE",
  secrets: "NAME TYPE DATA AGE",
  configmaps: "NAME DATA AGE",
  serviceaccounts: "NAME SECRETS AGE",
  persistentvolumes:
    "NAME CAPACITY ACCESS MODES RECLAIM POLICY STATUS CLAIM STORAGECLASS VOLUMEATTRIBUTESCLASS REASON AGE [VOLUMEMODE]",
  persistentvolumeclaims:
    "NAME STATUS VOLUME CAPACITY ACCESS MODES STORAGECLASS VOLUMEATTRIBUTESCLASS AGE [VOLUMEMODE]",
  "storageclasses.storage.k8s.io":
    "NAME PROVISIONER RECLAIMPOLICY VOLUMEBINDINGMODE ALLOWVOLUMEEXPANSION AGE",
  "horizontalpodautoscalers.autoscaling": "NAME REFERENCE TARGETS MINPODS MAXPODS REPLICAS AGE",
  "horizontalpodautoscalers.v1.autoscaling": "NAME REFERENCE TARGETS MINPODS MAXPODS REPLICAS AGE",
  "networkpolicies.networking.k8s.io": "NAME POD-SELECTOR AGE",
  "poddisruptionbudgets.policy": "NAME MIN AVAILABLE MAX UNAVAILABLE ALLOWED DISRUPTIONS AGE",
  "roles.rbac.authorization.k8s.io": "NAME CREATED AT",
  "clusterroles.rbac.authorization.k8s.io": "NAME CREATED AT",
  "rolebindings.rbac.authorization.k8s.io": "NAME ROLE AGE [USERS GROUPS SERVICEACCOUNTS]",
  "clusterrolebindings.rbac.authorization.k8s.io": "NAME ROLE AGE [USERS GROUPS SERVICEACCOUNTS]",
  "leases.coordination.k8s.io": "NAME HOLDER AGE",
  "certificatesigningrequests.certificates.k8s.io":
    "NAME AGE SIGNERNAME REQUESTOR REQUESTEDDURATION CONDITION",
  "mutatingwebhookconfigurations.admissionregistration.k8s.io": "NAME WEBHOOKS AGE",
  "validatingwebhookconfigurations.admissionregistration.k8s.io": "NAME WEBHOOKS AGE",
  "validatingadmissionpolicies.admissionregistration.k8s.io": "NAME VALIDATIONS PARAMKIND AGE",
  "validatingadmissionpolicybindings.admissionregistration.k8s.io": "NAME POLICYNAME PARAMREF AGE",
  "controllerrevisions.apps": "NAME CONTROLLER REVISION AGE",
  resourcequotas: "NAME REQUEST LIMIT AGE",
  "priorityclasses.scheduling.k8s.io": "NAME VALUE GLOBAL-DEFAULT AGE PREEMPTIONPOLICY",
  "runtimeclasses.node.k8s.io": "NAME HANDLER AGE",
  "flowschemas.flowcontrol.apiserver.k8s.io":
    "NAME PRIORITYLEVEL MATCHINGPRECEDENCE DISTINGUISHERMETHOD AGE MISSINGPL",
  "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io":
    "NAME TYPE NOMINALCONCURRENCYSHARES QUEUES HANDSIZE QUEUELENGTHLIMIT AGE",
  "apiservices.apiregistration.k8s.io": "NAME SERVICE AVAILABLE AGE",
};

/** Kinds whose status the server itself writes, at a time of its own. */
const serverWritten: ReadonlySet<string> = new Set(["APIService", "ResourceQuota"]);

const words = (text: string): string => text.trim().replaceAll(/\s+/g, " ");

describe("built-in kinds", { skip }, () => {
  let c: Cluster;
  let manifest = "";
  const n = ["-n", "every-kind"];
  before(async () => {
    manifest = await readFile(new URL("every-kind.yaml", import.meta.url), "utf8");
    c = await Cluster.start();
    await c.namespace("every-kind");
    await c.ok([...n, "apply", "-f", "-"], manifest);
  });
  after(() => c.stop());

  test("K061 columns of every kind", async () => {
    // One call for all: kubectl prints one table after the other, in the order asked for.
    const all = Object.keys(headers).join(",");
    const shown = async (...more: readonly string[]): Promise<string[]> =>
      (await c.ok([...n, "get", all, ...more]))
        .trim()
        .split("\n\n")
        .map((table) => words(table.split("\n")[0] ?? ""));
    const expected = Object.values(headers);
    assert.deepEqual(
      await shown(),
      expected.map((header) => words(header.replace(/\[.*\]/, ""))),
    );
    assert.deepEqual(
      await shown("-o", "wide"),
      expected.map((header) => words(header.replace(/[[\]]/g, ""))),
    );
    const events = await c.ok([...n, "get", "events"]);
    assert.match(events, /^LAST SEEN\s+TYPE\s+REASON\s+OBJECT\s+MESSAGE\n/);
  });

  test("applying the same again stores nothing", async () => {
    const versions = async (): Promise<string> => {
      const objects = await c.ok([...n, "get", "-f", "-", "-o", "json"], manifest);
      const list: unknown = JSON.parse(objects);
      const items = at(list, "items");
      assert.ok(Array.isArray(items));
      return items
        .filter((item) => !serverWritten.has(String(at(item, "kind"))))
        .map((item) => `${String(at(item, "kind"))} ${String(at(item, "metadata", "resourceVersion"))}`)
        .join("\n");
    };
    const first = await versions();
    await c.ok([...n, "apply", "-f", "-"], manifest);
    assert.equal(await versions(), first);
  });

  test("a person's file holds no field the server does not know", async () => {
    const documents = parseAllDocuments(manifest).map((document): unknown => document.toJS());
    const renamed = documents.filter(isObject).map((object) => JSON.stringify({ ...object, nonsense: 1 }));
    const ran = await c.k([...n, "create", "-f", "-"], renamed.join("\n---\n"));
    const refusals = ran.stderr.match(/strict decoding error: unknown field "nonsense"/g) ?? [];
    assert.equal(refusals.length, documents.length, ran.stderr);
    const again = await c.k([...n, "create", "-f", "-"], manifest);
    // Everything is there already; an unknown field would have been refused first.
    assert.doesNotMatch(again.stderr, /strict decoding error/);
  });

  test("every kind is answered in protobuf, alone, listed and watched", async () => {
    const accept = { accept: "application/vnd.kubernetes.protobuf" };
    const groups = await c.ask("GET", "/apis");
    const names = at(groups.json, "groups");
    assert.ok(Array.isArray(names));
    const roots = [
      "/api/v1",
      ...names.flatMap((group) => {
        const versions = at(group, "versions");
        return Array.isArray(versions)
          ? versions.map((version) => `/apis/${String(at(version, "groupVersion"))}`)
          : [];
      }),
    ];
    let kinds = 0;
    for (const root of roots) {
      const resources = at((await c.ask("GET", root)).json, "resources");
      assert.ok(Array.isArray(resources), root);
      for (const resource of resources) {
        const verbs = at(resource, "verbs");
        const name = String(at(resource, "name"));
        if (!Array.isArray(verbs) || !verbs.includes("list") || name.includes("/")) continue;
        const list = await c.ask("GET", `${root}/${name}`, { headers: accept });
        assert.equal(list.status, 200, `${root}/${name}`);
        assert.equal(list.headers["content-type"], "application/vnd.kubernetes.protobuf");
        assert.deepEqual([...list.bytes.subarray(0, 4)], [0x6b, 0x38, 0x73, 0], name);
        kinds++;
      }
    }
    assert.ok(kinds >= 55, `only ${kinds} kinds`);
    const one = await c.ask("GET", "/api/v1/namespaces/every-kind/configmaps/cm", { headers: accept });
    assert.ok(one.bytes.includes("every-kind"));
  });

  test("kubectl explains from either OpenAPI version", async () => {
    assert.match(await c.ok(["explain", "pod.spec.containers.livenessProbe"]), /failureThreshold/);
    assert.match(await c.ok(["explain", "cronjob.spec", "--recursive"]), /concurrencyPolicy/);
    const old = await c.ok(["explain", "deployment.spec.strategy", "--output=plaintext-openapiv2"]);
    assert.match(old, /rollingUpdate/);
  });
});

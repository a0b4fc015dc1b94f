/**
 * Administrators' bindings: made for configured groups, removed for others, and nobody else's touched.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { at } from "@kontinuum/std";
import { eventually, startTestServer, testContext, type TestServer } from "../server.fixture.ts";
import { adminRbacController, bindingName } from "./admin-rbac.controller.ts";

let server: TestServer;
before(async () => (server = await startTestServer()));
after(() => server.close());

const base = "/apis/rbac.authorization.k8s.io/v1";
const names = async (): Promise<string[]> => {
  const items = at(await server.client.request("GET", `${base}/clusterrolebindings`), "items");
  assert.ok(Array.isArray(items));
  return items
    .map((item) => String(at(item, "metadata", "name")))
    .filter((name) => !name.startsWith("system:"));
};
const bind = (name: string, managed: boolean): Promise<unknown> =>
  server.client.request(
    "POST",
    `${base}/clusterrolebindings`,
    {},
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: {
        name,
        ...(managed
          ? {
              labels: { "kontinuum.sh/managed-by": "admin-group-controller" },
              annotations: { "kontinuum.sh/admin-group": name },
            }
          : {}),
      },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "kontinuum-admin" },
    },
  );

test("one binding per configured group, stale ones go, foreign ones stay", async () => {
  await bind("stale", true);
  await bind("foreign", false);
  server.run(
    adminRbacController(
      testContext(
        server.edges,
        {
          KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "false",
          KONTINUUM_OIDC_ISSUER_URL: "https://issuer.example",
          KONTINUUM_OIDC_ADMIN_GROUPS: "ops, platform",
        },
        { adminRbacMs: 50 },
      ),
    ),
  );
  const wanted = [bindingName("ops"), bindingName("platform")];
  await eventually("both are bound and the stale one is gone", async () => {
    const all = await names();
    return wanted.every((name) => all.includes(name)) && !all.includes("stale");
  });
  assert.ok((await names()).includes("foreign"));
  const role = await server.client.request("GET", `${base}/clusterroles/kontinuum-admin`);
  assert.deepEqual(at(role, "rules", 1), { nonResourceURLs: ["*"], verbs: ["*"] });
  assert.match(bindingName("ops"), /^kontinuum-admin-[0-9a-f]{12}$/);
});

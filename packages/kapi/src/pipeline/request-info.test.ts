import assert from "node:assert/strict";
import { test } from "node:test";
import { readRequestInfo, type RequestInfo } from "./request-info.ts";

const read = (method: string, url: string): RequestInfo => {
  const [path = "", search = ""] = url.split("?");
  return readRequestInfo(method, path, () => new URLSearchParams(search));
};

const brief = ({ verb, group, version, namespace, resource, subresource, name }: RequestInfo): string =>
  [verb, group, version, namespace, resource, subresource, name].join("|");

test("requests are read from their first line", () => {
  const cases: [string, string, string][] = [
    ["GET", "/api/v1/pods", "list||v1||pods||"],
    ["GET", "/api/v1/namespaces/a/pods/b", "get||v1|a|pods||b"],
    ["GET", "/api/v1/namespaces/a/pods?watch=true", "watch||v1|a|pods||"],
    ["GET", "/api/v1/namespaces/a/pods?watch=0", "list||v1|a|pods||"],
    ["GET", "/api/v1/watch/namespaces/a/pods", "watch||v1|a|pods||"],
    ["GET", "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Db&watch=1", "watch||v1|a|pods||b"],
    ["GET", "/api/v1/namespaces/a", "get||v1|a|namespaces||a"],
    ["PUT", "/api/v1/namespaces/a/finalize", "update||v1|a|namespaces|finalize|a"],
    ["GET", "/api/v1/namespaces/a/status", "get||v1|a|namespaces|status|a"],
    ["POST", "/apis/apps/v1/namespaces/a/deployments", "create|apps|v1|a|deployments||"],
    ["PATCH", "/apis/apps/v1/namespaces/a/deployments/d/scale", "patch|apps|v1|a|deployments|scale|d"],
    ["DELETE", "/apis/apps/v1/namespaces/a/deployments", "deletecollection|apps|v1|a|deployments||"],
    ["DELETE", "/apis/apps/v1/namespaces/a/deployments/d", "delete|apps|v1|a|deployments||d"],
    [
      "GET",
      "/apis/rbac.authorization.k8s.io/v1/clusterroles/a%3Ab",
      "get|rbac.authorization.k8s.io|v1||clusterroles||a:b",
    ],
  ];
  for (const [method, url, expected] of cases) assert.equal(brief(read(method, url)), expected, url);
});

test("other paths are no resources", () => {
  for (const path of ["/", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/version"]) {
    const info = read("GET", path);
    assert.equal(info.isResource, false, path);
    assert.equal(info.verb, "get");
  }
  assert.throws(() => read("GET", "/api/v1/pods/%zz"), /escape/);
});

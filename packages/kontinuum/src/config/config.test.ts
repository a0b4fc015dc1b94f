/**
 * Configuration: defaults, precedence, and a clear refusal for each bad value.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isCoded } from "@kontinuum/std";
import { parseConfig } from "./config.ts";
import { redactConnectionString } from "./redact.ts";
import { readValues, variables, type Values } from "./variables.ts";

const parse = (environment: Record<string, string>, flags: Partial<Values> = {}) =>
  parseConfig(readValues({ KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "true", ...environment }, flags));

const refused = (environment: Record<string, string>, text: RegExp): void => {
  assert.throws(
    () => parse(environment),
    (error: unknown) => isCoded(error, "invalid_argument") && text.test(error.message),
  );
};

test("defaults are the published ones, and empty means unset", () => {
  const values = readValues({ KONTINUUM_LOG_LEVEL: "" });
  for (const { name, default: fallback } of variables) assert.equal(values[name], fallback, name);
});

test("a flag wins over the environment", () => {
  const { values } = parse(
    { KONTINUUM_SERVER_STORAGE: "memory://" },
    { KONTINUUM_SERVER_STORAGE: "sqlite://x.db" },
  );
  assert.equal(values.KONTINUUM_SERVER_STORAGE, "sqlite://x.db");
});

test("without authentication it does not start; with both kinds neither", () => {
  refused({ KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "" }, /no authentication is chosen/);
  refused({ KONTINUUM_OIDC_ISSUER_URL: "https://issuer.example" }, /exclude each other/);
  refused({ KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "maybe" }, /must be true or false, not "maybe"/);
});

test("an issuer needs administrators", () => {
  const oidc = {
    KONTINUUM_INSECURE_ALLOW_ANONYMOUS: "false",
    KONTINUUM_OIDC_ISSUER_URL: "https://issuer.example",
  };
  refused(oidc, /KONTINUUM_OIDC_ADMIN_GROUPS/);
  const config = parse({ ...oidc, KONTINUUM_OIDC_ADMIN_GROUPS: " ops, ,admins " });
  assert.deepEqual(config.oidc?.adminGroups, ["ops", "admins"]);
  assert.equal(config.oidc?.clientId, "kontinuum");
});

test("an address without host is loopback while everybody is anonymous", () => {
  const config = parse({});
  assert.deepEqual(config.listen, { host: "127.0.0.1", port: 8080, loopback: true });
  assert.equal(config.warnings.length, 1);
  const open = parse({ KONTINUUM_SERVER_ADDR: "0.0.0.0:9000" });
  assert.equal(open.listen.loopback, false);
  assert.equal(open.warnings.length, 2);
  assert.equal(parse({ KONTINUUM_SERVER_ADDR: "[::1]:0" }).listen.host, "::1");
  refused({ KONTINUUM_SERVER_ADDR: "8080" }, /must be host:port/);
  refused({ KONTINUUM_SERVER_ADDR: ":70000" }, /must be host:port/);
});

test("region and zone come together", () => {
  refused({ KONTINUUM_SERVER_REGION: "eu" }, /must both be set, or neither/);
  const config = parse({ KONTINUUM_SERVER_REGION: "eu", KONTINUUM_SERVER_ZONE: "a" });
  assert.deepEqual(config.placement, { region: "eu", zone: "a" });
});

test("log settings", () => {
  assert.deepEqual(parse({ KONTINUUM_LOG_LEVEL: "Debug", KONTINUUM_LOG_FORMAT: "console" }).log, {
    level: "debug",
    format: "text",
  });
  refused({ KONTINUUM_LOG_LEVEL: "loud" }, /one of debug, info, warn, error/);
  refused({ KONTINUUM_LOG_FORMAT: "xml" }, /json or console/);
});

test("TLS files and ranges", () => {
  refused({ KONTINUUM_SERVER_TLS_CERT_FILE: "a.pem" }, /must both be set/);
  refused({ KONTINUUM_DISCOVERY_ALLOWED_RANGES: "10.0.0.0/33" }, /not a range/);
  const [range] = parse({ KONTINUUM_DISCOVERY_ALLOWED_RANGES: "127.9.0.0/16" }).discovery.allowed;
  assert.equal(range?.contains("127.9.3.1"), true);
  assert.equal(range?.contains("127.8.3.1"), false);
  assert.equal(range?.contains("nonsense"), false);
});

test("what makes the way to the hub unsafe is refused or said", () => {
  const plaintext = { KONTINUUM_SERVER_GRPC_INSECURE_PLAINTEXT: "true" };
  refused({ ...plaintext, KONTINUUM_SERVER_GRPC_ENDPOINT: "hub.example:443" }, /in clear text; unset it/);
  parse({ ...plaintext, KONTINUUM_SERVER_GRPC_ENDPOINT: "127.0.0.1:8080" });
  const { warnings } = parse({ KONTINUUM_SERVER_GRPC_INSECURE_TLS_SKIP_VERIFY: "true" });
  assert.ok(warnings.some((line) => line.includes("KONTINUUM_SERVER_GRPC_INSECURE_TLS_SKIP_VERIFY")));
});

test("connection strings lose their secrets and nothing else", () => {
  const cases: [string, string][] = [
    ["postgres://u:p@db:5432/k?sslmode=require", "postgres://db:5432/k?sslmode=require"],
    ["postgres://db/k?user=x&PassWord=y&application_name=z", "postgres://db/k?user=x&application_name=z"],
    ["sqlite://kontinuum.db", "sqlite://kontinuum.db"],
    ["grpc://eu-a@hub:443", "grpc://hub:443"],
    ["unix:///run/etcd.sock", "unix:///run/etcd.sock"],
    ["postgres://u:p#x@db/k", "postgres:[redacted]"],
    ["host=db password=secret", "[redacted]"],
  ];
  for (const [given, shown] of cases) assert.equal(redactConnectionString(given), shown);
});

test("a zone never gets keys or host settings", () => {
  const travelling = variables.filter((entry) => entry.zone !== "never").map((entry) => entry.name as string);
  for (const name of travelling) assert.doesNotMatch(name, /TLS_(CERT|KEY)|ENCRYPTION|KRYTON|HELM|DISCOVERY/);
});

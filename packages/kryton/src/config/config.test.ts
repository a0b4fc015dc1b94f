import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { readConfig } from "./config.ts";
import { knownVariables } from "./known-variables.ts";
import { parseDuration } from "./values.ts";

const home = { HOME: "/home/x" };

test("defaults are the contract's, and off means loopback", () => {
  const config = readConfig(home);
  assert.equal(config.provider, "demo");
  assert.deepEqual(config.projects, ["default"]);
  assert.deepEqual([config.host, config.port], ["127.0.0.1", 8080]);
  assert.equal(config.storage, "memory://");
  assert.equal(config.reconcileIntervalMs, 30_000);
  assert.equal(config.shutdownTimeoutMs, 15_000);
  assert.equal(config.settingsConfigFile, "/home/x/.kryton/settings.json");
  assert.equal(readConfig({ ...home, KRYTON_RECONCILE_INTERVAL: "0" }).reconcileIntervalMs, 30_000);
  const open = { ...home, KRYTON_AUTH_MODE: "apikey", KRYTON_API_KEYS_FILE: "/k/keys.json" };
  assert.equal(readConfig(open).host, "");
  assert.equal(readConfig(open).labTokenFile, "/k/lab.token");
});

test("every refusal names its variable", () => {
  const refused: [Record<string, string>, RegExp][] = [
    [{ KRYTON_PROVIDER: "vmware" }, /KRYTON_PROVIDER/],
    [{ KRYTON_AUTH_MODE: "magic" }, /KRYTON_AUTH_MODE/],
    [{ KRYTON_PROJECTS: " , " }, /KRYTON_PROJECTS/],
    [{ KRYTON_PROJECTS: "Bad_Name" }, /KRYTON_PROJECTS/],
    [{ KRYTON_DEFAULT_PROJECT: "other" }, /KRYTON_DEFAULT_PROJECT/],
    [{ KRYTON_PROVIDER: "dockur" }, /KRYTON_AUTH_MODE must be set/],
    [{ KRYTON_PROVIDER: "libvirt", KRYTON_AUTH_MODE: "disabled" }, /KRYTON_ALLOW_INSECURE/],
    [{ KRYTON_PROVIDER: "kubevirt", KRYTON_AUTH_MODE: "disabled" }, /KRYTON_ALLOW_INSECURE/],
    [{ KRYTON_AUTH_MODE: "apikey" }, /KRYTON_API_KEYS_FILE/],
    [{ KRYTON_AUTH_MODE: "proxy" }, /KRYTON_TRUST_PROXY/],
    [{ KRYTON_AUTH_MODE: "proxy", KRYTON_TRUST_PROXY: "true" }, /KRYTON_PROXY_SECRET_FILE/],
    [{ KRYTON_LAB_AUTO_AUTH: "true" }, /KRYTON_LAB_AUTO_AUTH/],
    [{ KRYTON_TLS_CERT_FILE: "/c" }, /KRYTON_TLS_KEY_FILE/],
    [{ KRYTON_CLIENT_CA_FILE: "/c" }, /KRYTON_CLIENT_CA_FILE/],
    [{ KRYTON_ADDR: "nowhere" }, /KRYTON_ADDR/],
    [{ KRYTON_ADDR: ":99999" }, /KRYTON_ADDR/],
    [{ KRYTON_ADDR: "0.0.0.0:8080" }, /KRYTON_ALLOW_INSECURE/],
    [{ KRYTON_RECONCILE_INTERVAL: "30 seconds" }, /KRYTON_RECONCILE_INTERVAL/],
    [{ KRYTON_ALLOW_INSECURE: "yes" }, /KRYTON_ALLOW_INSECURE/],
    [{ KRYTON_RATE_LIMIT_RPS: "fast" }, /KRYTON_RATE_LIMIT_RPS/],
    [{ KRYTON_QUOTAS: "{" }, /KRYTON_QUOTAS/],
    [
      {
        KRYTON_PROVIDER: "kubevirt",
        KRYTON_AUTH_MODE: "apikey",
        KRYTON_API_KEYS_FILE: "/k",
        KRYTON_NAMESPACE_PREFIX: "-",
      },
      /KRYTON_NAMESPACE_PREFIX/,
    ],
  ];
  for (const [env, pattern] of refused)
    assert.throws(() => readConfig({ ...home, ...env }), pattern, JSON.stringify(env));
  assert.equal(
    readConfig({ ...home, KRYTON_ADDR: "0.0.0.0:80", KRYTON_ALLOW_INSECURE: "T" }).host,
    "0.0.0.0",
  );
});

test("a provider of the contract that is not built is refused with the remedy, before anything is made", () => {
  for (const provider of ["dockur", "libvirt", "kubevirt"]) {
    const env = {
      ...home,
      KRYTON_PROVIDER: provider,
      KRYTON_AUTH_MODE: "disabled",
      KRYTON_ALLOW_INSECURE: "true",
    };
    assert.throws(
      () => readConfig(env),
      new RegExp(`KRYTON_PROVIDER: ${provider} is not in this build yet; .*set KRYTON_PROVIDER=demo`),
    );
  }
});

test("an unknown variable is a warning that names what was meant, and never its value", () => {
  assert.deepEqual(readConfig(home).warnings, []);
  assert.deepEqual(readConfig({ ...home, KRYTON_STORGE: "postgres://u:secret@db/k" }).warnings, [
    "KRYTON_STORGE is not a variable of this program and is ignored; did you mean KRYTON_STORAGE?",
  ]);
});

test("the known variables are those the sources read", async () => {
  const sources = path.resolve(import.meta.dirname, "..");
  const read = new Set<string>();
  for (const file of await readdir(sources, { recursive: true })) {
    if (!file.endsWith(".ts") || /\.(test|fixture)\.ts$|known-variables/.test(file)) continue;
    for (const [name] of (await readFile(path.join(sources, file), "utf8")).matchAll(/\bKRYTON_[A-Z_]+\b/g))
      read.add(name);
  }
  assert.deepEqual([...read].sort(), [...knownVariables].sort());
});

test("durations are Go's", () => {
  assert.equal(parseDuration("1m30s"), 90_000);
  assert.equal(parseDuration("1.5h"), 5_400_000);
  assert.equal(parseDuration("250ms"), 250);
  assert.equal(parseDuration("-1s"), -1_000);
  assert.equal(parseDuration("0"), 0);
  for (const bad of ["", "5", "1d", "s", "1s2"]) assert.equal(parseDuration(bad), undefined, bad);
});

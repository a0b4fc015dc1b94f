/**
 * Generated configuration against the official one, contract by contract and field by field; what
 * the options do; and that what comes out is what a node takes.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { at, isCoded } from "@kontinuum/std";
import fc from "fast-check";
import { parseSecretsBundle } from "../pki/secrets-bundle.ts";
import { official } from "../testing/official.ts";
import { parseConfigDocuments, serializeConfigDocuments, type ConfigDocument } from "./config-document.ts";
import { generateConfigDocuments, generateMachineConfig } from "./generate-machine-config.ts";
import { readMachineConfig } from "./machine-config-facts.ts";
import {
  endpointOf,
  installerImage,
  type LinkOptions,
  type MachineConfigOptions,
  type NetworkOptions,
} from "./machine-config-options.ts";
import { validateMachineConfig } from "./validate-machine-config.ts";

const bundle = parseSecretsBundle(official("machine-config/stability/secrets.yaml"));
const contracts = [11, 12, 13, 14] as const;
const types = ["controlplane", "worker"] as const;
const folder = "machine-config/stability";

const base = (type: (typeof types)[number], minor: number): MachineConfigOptions => ({
  type,
  clusterName: "base",
  endpoint: "https://base:6443",
  kubernetesVersion: "1.28.0",
  talosVersion: `v1.${minor}`,
  bundle,
});

const overrides = (type: (typeof types)[number], minor: number): MachineConfigOptions => ({
  ...base(type, minor),
  certSans: ["foo", "bar"],
  allowSchedulingOnControlPlanes: true,
  install: { disk: "/dev/vda", extraKernelArgs: ["foo=bar", "bar=baz"] },
  localApiServerPort: 5443,
  sysctls: { foo: "bar" },
  network: { dnsDomain: "example.com", cni: { urls: ["https://example.com/cni.yaml"] } },
  registryMirrors: { "ghcr.io": ["https://ghcr.io.my-mirror.com"] },
  patches: [official(`${folder}/${minor < 14 ? "patch-pre14" : "patch"}.yaml`)],
});

/** The official generator writes this beside extra kernel arguments, which its own node refuses. */
function withoutContradiction(documents: ConfigDocument[], minor: number): ConfigDocument[] {
  const install = (documents[0]?.["machine"] as { install?: Record<string, unknown> } | undefined)?.install;
  if (minor === 12 || minor === 13) delete install?.["grubUseUKICmdline"];
  return documents;
}

describe("golden", () => {
  for (const minor of contracts) {
    for (const type of types) {
      test(`1.${minor} ${type}: base`, () => {
        const expected = parseConfigDocuments(official(`${folder}/v1.${minor}/base-${type}.yaml`));
        assert.deepEqual(parseConfigDocuments(generateMachineConfig(base(type, minor))), expected);
      });
      test(`1.${minor} ${type}: with options and a patch`, () => {
        const expected = parseConfigDocuments(official(`${folder}/v1.${minor}/overrides-${type}.yaml`));
        const generated = parseConfigDocuments(generateMachineConfig(overrides(type, minor)));
        assert.deepEqual(generated, withoutContradiction(expected, minor));
      });
    }
  }
});

describe("a node takes what is generated", () => {
  for (const minor of contracts) {
    for (const type of types) {
      test(`1.${minor} ${type}`, () => {
        const text = generateMachineConfig({
          ...base(type, minor),
          hostname: "node-1",
          install: { diskSelector: {} },
          network: {
            cni: "none",
            kubeProxy: false,
            podSubnets: ["10.244.0.0/16", "fc00:db8:10::/56"],
            serviceSubnets: ["10.96.0.0/12", "fc00:db8:20::/112"],
            nameservers: ["192.0.2.53", "2001:db8::53"],
            timeServers: ["time.example"],
            ...(type === "controlplane" ? { vip: { address: "192.0.2.100", link: "bond0" } } : {}),
            links,
          },
          encryption: {
            state: [{ kind: "tpm" }],
            ephemeral: [{ kind: "kms", endpoint: "https://kms.example:4050" }, { kind: "nodeID" }],
          },
        });
        const result = validateMachineConfig(text, "metal", { talosVersion: `v1.${minor}` });
        assert.deepEqual([...result.decodeErrors, ...result.errors, ...result.warnings], []);
        const facts = readMachineConfig(result.documents);
        assert.equal(facts.hostname, "node-1");
        assert.equal(facts.controlPlane, type === "controlplane");
        assert.equal(facts.endpoint, "https://base:6443");
        assert.equal(facts.cni, "none");
        assert.equal(facts.kubeProxy, type === "worker");
        assert.equal(facts.osCa?.crt, bundle.certs.os.crt);
        assert.equal(facts.osCa?.key, type === "controlplane" ? bundle.certs.os.key : "");
        assert.equal(facts.kubernetesCa?.crt, bundle.certs.k8s.crt);
        assert.equal(facts.podSubnets.length, 2);
        assert.equal(facts.vip, type === "controlplane" ? "192.0.2.100" : undefined);
        assert.deepEqual(
          facts.volumes.map(({ name, keys }) => [name, keys.map(({ kind }) => kind)]),
          [
            ["STATE", ["tpm"]],
            ["EPHEMERAL", ["kms", "nodeID"]],
          ],
        );
      });
    }
  }
});

const links: readonly LinkOptions[] = [
  {
    kind: "bond",
    name: "bond0",
    links: ["eth0", "eth1"],
    mode: "802.3ad",
    hashPolicy: "layer3+4",
    lacpRate: "fast",
    miimon: 100,
    mtu: 9000,
  },
  {
    kind: "vlan",
    name: "bond0.42",
    parent: "bond0",
    vlanId: 42,
    addresses: ["192.0.2.10/24", "2001:db8::10/64"],
    routes: [{ gateway: "192.0.2.1" }, { destination: "198.51.100.0/24", gateway: "192.0.2.2", metric: 10 }],
  },
  { name: "eth2", dhcp: true },
];

test("VLANs and the VIP stand under their link before 1.12 and in documents from then on", () => {
  const network: NetworkOptions = { links, vip: { address: "192.0.2.100", link: "bond0" } };
  const [legacy] = generateConfigDocuments({ ...base("controlplane", 11), network, hostname: "n" });
  assert.deepEqual(at(legacy, "machine", "network"), {
    hostname: "n",
    interfaces: [
      {
        interface: "bond0",
        mtu: 9000,
        bond: {
          interfaces: ["eth0", "eth1"],
          mode: "802.3ad",
          xmitHashPolicy: "layer3+4",
          lacpRate: "fast",
          miimon: 100,
        },
        vip: { ip: "192.0.2.100" },
        vlans: [
          {
            vlanId: 42,
            addresses: ["192.0.2.10/24", "2001:db8::10/64"],
            routes: [
              { network: "0.0.0.0/0", gateway: "192.0.2.1" },
              { network: "198.51.100.0/24", gateway: "192.0.2.2", metric: 10 },
            ],
          },
        ],
      },
      { interface: "eth2", dhcp: true },
    ],
  });
  const kinds = generateConfigDocuments({ ...base("controlplane", 13), network }).map(({ kind }) => kind);
  assert.deepEqual(kinds, [
    undefined,
    "HostnameConfig",
    "BondConfig",
    "VLANConfig",
    "LinkConfig",
    "DHCPv4Config",
    "Layer2VIPConfig",
  ]);
});

test("a disk selector becomes an expression in 1.14", () => {
  const match = (install: MachineConfigOptions["install"]): unknown => {
    const documents = generateConfigDocuments({ ...base("worker", 14), ...(install ? { install } : {}) });
    const found = documents.find(({ kind }) => kind === "UnattendedInstallConfig");
    return at(found, "provisioning", "diskSelector", "match");
  };
  const any = 'disk.transport != "" && !disk.readonly && !disk.cdrom';
  assert.equal(match({ diskSelector: {} }), any);
  assert.equal(match({ diskSelector: { size: ">= 100GB" } }), `${any} && disk.size >= 100000000000u`);
  assert.equal(
    match({ diskSelector: { model: "WDC*", type: "hdd" } }),
    `${any} && glob("WDC*", disk.model) && disk.rotational`,
  );
  assert.equal(
    match({ diskSelector: { serial: 'a" || true || "' } }),
    `${any} && disk.serial == "a\\" || true || \\""`,
  );
});

test("bad options are refused by name", () => {
  const refuses = (options: Partial<MachineConfigOptions>, code: "invalid_argument" | "unsupported"): void =>
    assert.throws(
      () => generateMachineConfig({ ...base("worker", 13), ...options }),
      (error) => isCoded(error, code),
    );
  refuses({ endpoint: "http://base:6443" }, "invalid_argument");
  refuses({ endpoint: "https://user@base:6443" }, "invalid_argument");
  refuses({ endpoint: "base" }, "invalid_argument");
  refuses({ hostname: "Node 1" }, "invalid_argument");
  refuses({ kubernetesVersion: "latest" }, "invalid_argument");
  refuses({ talosVersion: "v1.10.0" }, "unsupported");
  refuses({ talosVersion: "v1.15" }, "unsupported");
  refuses({ talosVersion: "1.13.x" }, "invalid_argument");
  refuses({ encryption: { state: [] } }, "invalid_argument");
  refuses({ encryption: { state: [{ kind: "kms", endpoint: "" }] } }, "invalid_argument");
  refuses({ talosVersion: "v1.14", install: { diskSelector: { size: "large" } } }, "invalid_argument");
});

test("an installer image carries the schematic", () => {
  const schematic = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba";
  assert.equal(installerImage({ talosVersion: "1.13.0" }), "ghcr.io/siderolabs/installer:v1.13.0");
  assert.equal(
    installerImage({ talosVersion: "v1.13.0", schematic, secureBoot: true }),
    `factory.talos.dev/metal-installer-secureboot/${schematic}:v1.13.0`,
  );
  assert.throws(() => installerImage({ talosVersion: "v1.13.0", schematic: "../x" }), /64 hexadecimal/);
});

test("an endpoint of an address puts IPv6 in brackets", () => {
  assert.equal(endpointOf("192.0.2.1"), "https://192.0.2.1:6443");
  assert.equal(endpointOf("2001:db8::1"), "https://[2001:db8::1]:6443");
});

test("whatever texts go in come out again, and the result stays valid", () => {
  const label = fc.stringMatching(/^[a-z]([a-z0-9-]{0,20}[a-z0-9])?$/);
  const anyText = fc.string({ maxLength: 40, unit: "grapheme" });
  fc.assert(
    fc.property(
      fc.record({
        type: fc.constantFrom(...types),
        minor: fc.constantFrom(...contracts),
        hostname: label,
        clusterName: fc.oneof(
          label,
          anyText.filter((text) => text !== ""),
        ),
        sysctls: fc.dictionary(label, anyText),
        sans: fc.array(label, { maxLength: 3 }),
        passphrase: anyText,
      }),
      ({ type, minor, hostname, clusterName, sysctls, sans, passphrase }) => {
        const options: MachineConfigOptions = {
          ...base(type, minor),
          hostname,
          clusterName,
          sysctls,
          certSans: sans,
          install: { disk: "/dev/sda" },
          encryption: { ephemeral: [{ kind: "static", passphrase }] },
        };
        const documents = generateConfigDocuments(options);
        const text = serializeConfigDocuments(documents);
        assert.deepEqual(parseConfigDocuments(text), documents);
        const result = validateMachineConfig(text, "metal", { talosVersion: `1.${minor}` });
        assert.deepEqual([...result.decodeErrors, ...result.errors], []);
        assert.equal(readMachineConfig(result.documents).clusterName, clusterName);
      },
    ),
    { numRuns: 60 },
  );
});

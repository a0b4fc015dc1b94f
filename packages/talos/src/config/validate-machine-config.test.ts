/**
 * Which configurations a node takes: the official files, and one rule after another.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { parseSecretsBundle } from "../pki/secrets-bundle.ts";
import { official, officialFiles } from "../testing/official.ts";
import { selectsDisk } from "./expression.ts";
import { generateMachineConfig } from "./generate-machine-config.ts";
import { readMachineConfig } from "./machine-config-facts.ts";
import type { MachineConfigOptions } from "./machine-config-options.ts";
import { validateForNode, type CandidateDisk } from "./validate-for-node.ts";
import { validateMachineConfig, type ValidationOptions } from "./validate-machine-config.ts";

const bundle = parseSecretsBundle(official("machine-config/stability/secrets.yaml"));
const options: MachineConfigOptions = {
  type: "controlplane",
  clusterName: "demo",
  endpoint: "https://192.0.2.10:6443",
  kubernetesVersion: "1.32.0",
  talosVersion: "v1.13.0",
  bundle,
  install: { disk: "/dev/sda" },
};
const problems = (
  text: string,
  mode: "metal" | "cloud" | "container" = "metal",
  more: ValidationOptions = {},
): string[] => {
  const { decodeErrors, errors } = validateMachineConfig(text, mode, { talosVersion: "v1.13.0", ...more });
  return [...decodeErrors, ...errors];
};
const patched = (patch: string, more: Partial<MachineConfigOptions> = {}): string[] =>
  problems(generateMachineConfig({ ...options, ...more, patches: [patch] }));

describe("official files", () => {
  const read = officialFiles("documents").filter((path) => !path.startsWith("documents/meta/"));
  assert(read.length > 90);
  for (const path of [
    ...read,
    "config-decoder/controlplane.yaml",
    "config-decoder/worker.yaml",
    "config-loader/multidoc1.test",
    "config-loader/multidoc2.test",
    "config-loader/multidoc3.test",
    "config-loader/controlplane.test",
    "config-loader/worker.test",
    "config-loader/empty1.test",
  ]) {
    test(`${path} decodes`, () => {
      assert.deepEqual(validateMachineConfig(official(path), "metal").decodeErrors, []);
    });
  }
  test("the same document twice does not", () => {
    assert.match(
      problems(official("config-decoder/double/v1alpha1.yaml"))[0] ?? "",
      /v1alpha1 is there twice/,
    );
  });
});

describe("decoding", () => {
  test("unknown keys are fatal at any level and told by path, without values", () => {
    assert.deepEqual(patched("machine:\n  kubelet:\n    extra: top-secret\nclusters: {}\n"), [
      "unknown keys found during decoding: v1alpha1: machine.kubelet.extra, clusters",
    ]);
  });
  test("kinds and fields of later releases are unknown to earlier ones", () => {
    const hostname =
      "version: v1alpha1\nmachine: {}\n---\napiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n";
    const old = validateMachineConfig(hostname, "metal", { talosVersion: "v1.11.0" });
    assert.match(old.decodeErrors[0] ?? "", /"HostnameConfig" "v1alpha1": not registered in Talos 1\.11/);
    assert.deepEqual(validateMachineConfig(hostname, "metal", { talosVersion: "v1.12.0" }).decodeErrors, []);
    const dns = "apiVersion: v1alpha1\nkind: ResolverConfig\nhostDNS:\n  enabled: true\n";
    assert.match(problems(dns)[0] ?? "", /unknown keys.*hostDNS/);
    assert.deepEqual(problems(dns, "metal", { talosVersion: "v1.14.0" }), []);
  });
  test("a kind needs an API version and the reverse; a document is a mapping; nothing is nothing", () => {
    assert.match(problems("kind: HostnameConfig\nhostname: a\n")[0] ?? "", /no apiVersion/);
    assert.match(problems("apiVersion: v1alpha1\nhostname: a\n")[0] ?? "", /no kind/);
    assert.match(problems("apiVersion: v2\nkind: HostnameConfig\n")[0] ?? "", /not registered/);
    assert.match(problems("- a\n")[0] ?? "", /no mapping/);
    assert.deepEqual(problems("---\n---\n"), ["config not found"]);
    assert.match(problems("a: [\n")[0] ?? "", /is not YAML/);
  });
  test("types are checked as Go reads them", () => {
    assert.deepEqual(patched("machine:\n  kubelet:\n    registerWithFQDN: yes\n"), []);
    assert.deepEqual(patched("machine:\n  sysctls:\n    net.ipv4.ip_forward: 1\n"), []);
    assert.match(
      patched("machine:\n  install:\n    wipe: maybe\n")[0] ?? "",
      /machine\.install\.wipe: expected true or false/,
    );
    assert.match(patched("machine:\n  certSANs: {}\n")[0] ?? "", /machine\.certSANs: expected a list/);
    assert.match(patched("machine:\n  time:\n    bootTimeout: soon\n")[0] ?? "", /expected a duration/);
  });
  test("one link has one kind of document", () => {
    const text = ["LinkConfig", "DummyLinkConfig"]
      .map((kind) => `apiVersion: v1alpha1\nkind: ${kind}\nname: eth0\n`)
      .join("---\n");
    assert.match(problems(text)[0] ?? "", /LinkConfig and DummyLinkConfig both configure link eth0/);
  });
});

describe("rules", () => {
  const cases: [string, string, RegExp][] = [
    [
      "an endpoint without host",
      "cluster:\n  controlPlane:\n    endpoint: https://\n",
      /endpoint must be a URL with a host/,
    ],
    [
      "an endpoint with a bad port",
      "cluster:\n  controlPlane:\n    endpoint: https://a:70000\n",
      /port outside/,
    ],
    ["an unknown type", "machine:\n  type: boss\n", /machine\.type must be/],
    ["persist off", "persist: false\n", /persist/],
    ["an unknown CNI", "cluster:\n  network:\n    cni:\n      name: calico\n", /flannel, custom or none/],
    [
      "URLs with flannel",
      "cluster:\n  network:\n    cni:\n      name: flannel\n      urls: [https://a]\n",
      /not allowed with flannel/,
    ],
    [
      "forwarding without host DNS",
      "machine:\n  features:\n    hostDNS:\n      enabled: false\n",
      /needs hostDNS\.enabled/,
    ],
    [
      "a discovery endpoint with a path",
      "cluster:\n  discovery:\n    registries:\n      service:\n        endpoint: https://a/b\n",
      /no path/,
    ],
    [
      "kernel arguments beside the image's",
      "machine:\n  install:\n    extraKernelArgs: [a]\n    grubUseUKICmdline: true\n",
      /exclude each other/,
    ],
    [
      "a selector by name",
      "machine:\n  install:\n    diskSelector:\n      name: x\n",
      /name is not supported/,
    ],
    [
      "a selector of no type",
      "machine:\n  install:\n    diskSelector:\n      type: tape\n",
      /ssd, hdd, nvme or sd/,
    ],
    ["a nameless manifest", "cluster:\n  inlineManifests:\n    - contents: a\n", /a name is empty/],
    ["a manifest twice", "cluster:\n  inlineManifests:\n    - name: a\n    - name: a\n", /there twice/],
    ["a bad label", "machine:\n  nodeLabels:\n    -a: b\n", /not a valid label/],
    ["a bad taint", "machine:\n  nodeTaints:\n    a: b:Sometimes\n", /not a valid taint/],
    [
      "a protected kubelet setting",
      "machine:\n  kubelet:\n    extraConfig:\n      authentication: {}\n",
      /cannot be overridden/,
    ],
    [
      "a host name twice",
      "machine:\n  network:\n    hostname: a\n",
      /conflicts with machine\.network\.hostname/,
    ],
    [
      "a stable host name",
      "machine:\n  features:\n    stableHostname: true\n",
      /conflicts with machine\.features\.stableHostname/,
    ],
    [
      "host name and automatic one",
      "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n",
      /auto and hostname exclude/,
    ],
    [
      "an unknown volume",
      "apiVersion: v1alpha1\nkind: VolumeConfig\nname: DATA\n",
      /STATE, EPHEMERAL, IMAGECACHE/,
    ],
    [
      "encryption without keys",
      "apiVersion: v1alpha1\nkind: VolumeConfig\nname: STATE\nencryption:\n  provider: luks2\n",
      /at least one key/,
    ],
    [
      "a key without method",
      "apiVersion: v1alpha1\nkind: VolumeConfig\nname: STATE\nencryption:\n  keys: [{slot: 0}]\n",
      /states no method/,
    ],
    [
      "a slot twice",
      "apiVersion: v1alpha1\nkind: VolumeConfig\nname: STATE\nencryption:\n  keys: [{slot: 0, nodeID: {}}, {nodeID: {}}]\n",
      /slot is there twice/,
    ],
    [
      "KubeSpan without discovery",
      "machine: {network: {kubespan: {enabled: true}}}\ncluster: {discovery: {enabled: false}}\n",
      /kubespan needs cluster\.discovery/,
    ],
    [
      "an address that is none",
      "machine: {network: {interfaces: [{interface: eth0, addresses: [nope]}]}}\n",
      /addresses: an entry is no address/,
    ],
    [
      "a route to nowhere",
      "machine: {network: {interfaces: [{interface: eth0, routes: [{network: nope}]}]}}\n",
      /routes.0.network is no network/,
    ],
    [
      "a link without name and selector",
      "machine: {network: {interfaces: [{dhcp: true}]}}\n",
      /exactly one of interface/,
    ],
    [
      "a log format",
      "machine: {logging: {destinations: [{endpoint: 'tcp://a:1', format: xml}]}}\n",
      /json_lines/,
    ],
    [
      "a log without endpoint",
      "machine: {logging: {destinations: [{format: json_lines}]}}\n",
      /endpoint is required/,
    ],
    [
      "a node IP range that is none",
      "machine: {kubelet: {nodeIP: {validSubnets: [nope]}}}\n",
      /validSubnets: an entry is no network/,
    ],
    [
      "an etcd range that is none",
      "cluster: {etcd: {advertisedSubnets: ['!nope']}}\n",
      /advertisedSubnets: an entry/,
    ],
    ["a taint without effect", "machine: {nodeTaints: {a: b}}\n", /not a valid taint/],
    [
      "a bond of nothing",
      "{apiVersion: v1alpha1, kind: BondConfig, name: b}\n",
      /links is required.*bondMode is required/,
    ],
    [
      "a VLAN of nothing",
      "{apiVersion: v1alpha1, kind: VLANConfig, name: b, vlanID: 5000}\n",
      /between 1 and 4094.*parent is required/,
    ],
    [
      "a VIP by name",
      "{apiVersion: v1alpha1, kind: Layer2VIPConfig, name: b, link: eth0}\n",
      /name must be an IP address/,
    ],
    [
      "a host without address",
      "{apiVersion: v1alpha1, kind: StaticHostConfig, name: b, hostnames: [a]}\n",
      /name must be an IP address/,
    ],
    [
      "an extension of nothing",
      "{apiVersion: v1alpha1, kind: ExtensionServiceConfig, name: b}\n",
      /configFiles or environment/,
    ],
    [
      "a rule for no port",
      "{apiVersion: v1alpha1, kind: NetworkRuleConfig, name: b}\n",
      /portSelector\.ports is required/,
    ],
    [
      "a user volume of nothing",
      "{apiVersion: v1alpha1, kind: UserVolumeConfig, name: b}\n",
      /diskSelector\.match is required.*minSize or/,
    ],
    [
      "an expression that does not close",
      "{apiVersion: v1alpha1, kind: OOMConfig, triggerExpression: '('}\n",
      /triggerExpression is not a valid expression/,
    ],
    [
      "an expression about what there is not",
      "{apiVersion: v1alpha1, kind: UserVolumeConfig, name: data, provisioning: {minSize: 1GB, diskSelector: {match: disk.colour == 'red'}}}\n",
      /provisioning.diskSelector.match is not a valid expression: .*colour/,
    ],
    [
      "an expression that is no answer",
      "{apiVersion: v1alpha1, kind: UserVolumeConfig, name: data, provisioning: {minSize: 1GB, diskSelector: {match: disk.size}}}\n",
      /it gives uint, not bool/,
    ],
    [
      "an expression that compares numbers of two types",
      "{apiVersion: v1alpha1, kind: UserVolumeConfig, name: data, provisioning: {minSize: 1GB, diskSelector: {match: disk.size > 1}}}\n",
      /no matching overload/,
    ],
    [
      "a port range that ends before it begins",
      "{apiVersion: v1alpha1, kind: NetworkRuleConfig, name: web, portSelector: {ports: [20-10], protocol: tcp}}\n",
      /ends before it begins/,
    ],
    [
      "port ranges that overlap",
      "{apiVersion: v1alpha1, kind: NetworkRuleConfig, name: web, portSelector: {ports: [80, 70-90], protocol: tcp}}\n",
      /overlap/,
    ],
    [
      "a port that is none",
      "{apiVersion: v1alpha1, kind: NetworkRuleConfig, name: web, portSelector: {ports: ['80'], protocol: tcp}}\n",
      /portSelector.ports.0: expected a port or a range/,
    ],
    [
      "a routing rule on a reserved priority",
      "{apiVersion: v1alpha1, kind: RoutingRuleConfig, name: '32766', table: 100}\n",
      /reserved priority/,
    ],
    [
      "a DUID nobody asked for",
      "{apiVersion: v1alpha1, kind: DHCPv4Config, name: eth0, duidRaw: 00:01}\n",
      /duidRaw needs clientIdentifier duid/,
    ],
    [
      "a bond's setting of another mode",
      "machine: {network: {interfaces: [{interface: bond0, bond: {mode: active-backup, interfaces: [eth0], lacpRate: fast}}]}}\n",
      /lacpRate is for 802.3ad only/,
    ],
    [
      "a link in two bonds",
      "machine: {network: {interfaces: [{interface: bond0, bond: {mode: 802.3ad, interfaces: [eth0]}}, {interface: bond1, bond: {mode: 802.3ad, interfaces: [eth0]}}]}}\n",
      /eth0 belongs to both bond0 and bond1/,
    ],
    [
      "a time server said twice",
      "machine: {time: {servers: [a.example]}}\n---\n{apiVersion: v1alpha1, kind: TimeSyncConfig, ntp: {servers: [b.example]}}\n",
      /TimeSyncConfig conflicts with machine.time.servers/,
    ],
    [
      "an image that nobody verifies",
      "{apiVersion: v1alpha1, kind: ImageVerificationConfig, rules: [{image: 'ghcr.io/**'}]}\n",
      /rules.0: one of keyless, publicKey, skip and deny is required/,
    ],
    [
      "encryption by nobody",
      "{apiVersion: v1alpha1, kind: VolumeConfig, name: STATE, encryption: {keys: [{nodeID: {}}]}}\n",
      /provider must be luks2/,
    ],
    [
      "an event sink without port",
      "{apiVersion: v1alpha1, kind: EventSinkConfig, endpoint: a}\n",
      /address with port/,
    ],
    [
      "too much of a pool",
      "{apiVersion: v1alpha1, kind: ZswapConfig, maxPoolPercent: 101}\n",
      /between 0 and 100/,
    ],
    [
      "a size that is none",
      "machine: {install: {diskSelector: {size: huge}}}\n",
      /install\.diskSelector\.size: expected a size/,
    ],
    [
      "a peer without port",
      "{apiVersion: v1alpha1, kind: KubeSpanEndpointsConfig, extraAnnouncedEndpoints: [192.0.2.1]}\n",
      /expected an address with port/,
    ],
    [
      "a nameless document",
      "apiVersion: v1alpha1\nkind: KmsgLogConfig\nurl: tcp://a:1\n",
      /name is required/,
    ],
  ];
  for (const [name, patch, pattern] of cases) {
    test(`${name} is refused`, () => assert.match(patched(patch).join("; "), pattern));
  }

  const newest: readonly [string, string, RegExp][] = [
    [
      "a control plane's document on a worker",
      "kind: KubeSchedulerConfig\nimage: a:1\n",
      /for control planes only/,
    ],
    [
      "an API server argument with a document of its own",
      "kind: KubeAPIServerConfig\nextraArgs: {oidc-issuer-url: x}\n",
      /use KubeAuthenticationConfig/,
    ],
    [
      "subnets that do not fit each other",
      "kind: KubeNetworkConfig\npodSubnets: [10.0.0.0/12, fd00::/48]\n",
      /must be as many|more than 2/,
    ],
    [
      "a subnet written from its middle",
      "kind: KubeNetworkConfig\nserviceSubnets: [10.96.0.1/12]\n",
      /not the first address/,
    ],
    [
      "a volume group of nothing",
      "kind: LVMVolumeGroupConfig\nname: pool\n",
      /volumeSelector.match is required/,
    ],
    ["a file that Talos writes", "kind: EtcFileConfig\nname: ssl/x\n", /Talos writes itself/],
    ["a file outside /etc", "kind: EtcFileConfig\nname: a/../../x\n", /path below \/etc/],
    [
      "containers that wait for each other",
      "kind: ContainerConfig\nname: a\nimage: a:1\ndependsOn: {containers: [b]}\n---\napiVersion: v1alpha1\nkind: ContainerConfig\nname: b\nimage: b:1\ndependsOn: {containers: [a]}\n",
      /a, b wait for each other/,
    ],
    [
      "a resolver whose certificate nobody can check",
      "kind: ResolverConfig\nnameservers: [{address: 1.1.1.1, protocol: DoT}]\n",
      /tlsServerName is required/,
    ],
    ["a role there is not", "kind: KubeTalosAPIAccessConfig\nallowedRoles: [root]\n", /no role of Talos/],
    [
      "a legacy section beside its document",
      "kind: UdevRulesConfig\n---\nmachine: {install: {disk: /dev/sda}}\n",
      /UnattendedInstallConfig conflicts with machine.install/,
    ],
  ];
  for (const [name, patch, pattern] of newest) {
    test(`1.14: ${name} is refused`, () => {
      const talosVersion = "v1.14.0";
      const type = name.endsWith("worker") ? "worker" : "controlplane";
      const text = generateMachineConfig({
        ...options,
        type,
        talosVersion,
        kubernetesVersion: "1.34.0",
        patches: [`apiVersion: v1alpha1\n${patch}`],
      });
      assert.match(problems(text, "metal", { talosVersion }).join("; "), pattern);
    });
  }

  test("keys of CAs belong to control planes only", () => {
    const text = generateMachineConfig(options);
    assert.match(
      problems(text.replace("type: controlplane", "type: worker")).join(),
      /machine\.ca\.key is not allowed on a worker.*cluster\.ca\.key.*cluster\.etcd/,
    );
    const worker = generateMachineConfig({ ...options, type: "worker" });
    assert.match(
      problems(worker.replace("type: worker", "type: controlplane")).join(),
      /machine\.ca\.key is required/,
    );
    const vip = "machine: {network: {interfaces: [{interface: eth0, vip: {ip: 192.0.2.1}}]}}\n";
    assert.match(patched(vip, { type: "worker" }).join(), /virtual shared IP/);
  });

  test("a disk is demanded on metal, before the installation", () => {
    const text = generateMachineConfig({ ...options, install: {} });
    assert.match(problems(text).join(), /either disk or diskSelector/);
    assert.deepEqual(problems(text, "cloud"), []);
    assert.deepEqual(problems(text, "metal", { installed: true }), []);
  });

  test("what only a control plane may have, and what only it is asked for", () => {
    const access =
      "machine: {features: {kubernetesTalosAPIAccess: {enabled: true, allowedRoles: [os:reader]}}}\n";
    assert.deepEqual(patched(access), []);
    assert.match(patched(access, { type: "worker" }).join(), /for control planes only/);
    assert.deepEqual(patched("cluster: {network: {cni: {name: calico}}}\n", { type: "worker" }), []);
  });

  test("a KMS key without endpoint is taken with a warning", () => {
    const patch =
      "{apiVersion: v1alpha1, kind: VolumeConfig, name: STATE, encryption: {provider: luks2, keys: [{kms: {}}]}}\n";
    const result = validateMachineConfig(generateMachineConfig({ ...options, patches: [patch] }), "metal");
    assert.equal(result.valid, true);
    assert.match(result.warnings.join(), /KMS key without endpoint/);
  });

  test("an empty type is a worker, with a warning", () => {
    const worker = generateMachineConfig({ ...options, type: "worker" }).replace("type: worker", 'type: ""');
    const { errors, warnings } = validateMachineConfig(worker, "metal", { talosVersion: "v1.13" });
    assert.deepEqual(errors, []);
    assert.equal(warnings.length, 1);
  });
});

describe("what only the node knows", () => {
  const disk = (more: Partial<CandidateDisk>): CandidateDisk => ({
    name: "sda",
    devicePath: "/dev/sda",
    sizeBytes: 100e9,
    model: "WDC 100",
    serial: "s1",
    uuid: "",
    wwid: "",
    transport: "sata",
    rotational: true,
    readonly: false,
    cdrom: false,
    busPath: "/pci0000:00/1",
    ...more,
  });
  const nodeErrors = (
    more: Partial<MachineConfigOptions>,
    disks: CandidateDisk[],
    talosVersion = "v1.13.0",
  ): string[] => {
    const text = generateMachineConfig({ ...options, ...more });
    return validateForNode(readMachineConfig(validateMachineConfig(text, "metal").documents), {
      talosVersion,
      disks,
    });
  };

  test("the selector must match a disk; an empty one any writable disk", () => {
    const none = [disk({ cdrom: true }), disk({ readonly: true }), disk({ transport: "" })];
    assert.match(nodeErrors({ install: { diskSelector: {} } }, none).join(), /matches no disk/);
    assert.deepEqual(nodeErrors({ install: { diskSelector: {} } }, [...none, disk({})]), []);
    for (const diskSelector of [
      { size: "> 50GB" },
      { size: "<= 100 GB" },
      { model: "WDC*" },
      { type: "hdd" as const },
      { busPath: "/pci*/1" },
    ]) {
      assert.deepEqual(nodeErrors({ install: { diskSelector } }, [disk({})]), []);
    }
    for (const diskSelector of [
      { size: "> 1TB" },
      { model: "WD" },
      { type: "nvme" as const },
      { serial: "s2" },
    ]) {
      assert.match(nodeErrors({ install: { diskSelector } }, [disk({})]).join(), /matches no disk/);
    }
  });

  test("an expression chooses the disk, by what is known of it", () => {
    const disks = [
      disk({ cdrom: true, devicePath: "/dev/sr0" }),
      disk({ transport: "nvme", devicePath: "/dev/nvme0n1" }),
    ];
    const chosen = (match: string): string | undefined =>
      disks.find((candidate) => selectsDisk(match, candidate))?.devicePath;
    assert.equal(chosen('disk.dev_path == "/dev/nvme0n1"'), "/dev/nvme0n1");
    assert.equal(chosen('disk.size >= 99u * GB && !disk.cdrom && glob("WDC*", disk.model)'), "/dev/nvme0n1");
    assert.equal(chosen("disk.cdrom"), "/dev/sr0");
    assert.equal(chosen("disk.size > 1u * TiB"), undefined);
    assert.equal(chosen("disk.size > 1u / 0u"), undefined, "one that fails chooses nothing");
    assert.equal(chosen("disk."), undefined, "nor does one that is none");
  });

  test("Kubernetes must lie in the release's range", () => {
    assert.deepEqual(nodeErrors({ kubernetesVersion: "1.36.1" }, []), []);
    assert.equal(nodeErrors({ kubernetesVersion: "1.30.0" }, []).length, 4);
    assert.equal(nodeErrors({ kubernetesVersion: "1.30.0", type: "worker" }, []).length, 1);
    assert.match(
      nodeErrors({ patches: ["machine:\n  kubelet:\n    image: kubelet:latest\n"] }, []).join(),
      /not a Kubernetes version/,
    );
  });
});

test("any text is judged, none throws", () => {
  const fragment = fc.constantFrom(
    "machine:",
    "cluster:",
    "  ca: {crt: x}",
    "---",
    "apiVersion: v1alpha1",
    "kind: HostnameConfig",
    "name: [",
    "&a *a",
    "  type: worker",
    "hostname: 1",
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json(),
        fc.array(fragment).map((lines) => lines.join("\n")),
      ),
      (text) => {
        const result = validateMachineConfig(text, "metal");
        return result.valid === (result.decodeErrors.length + result.errors.length === 0);
      },
    ),
    { numRuns: 500 },
  );
});

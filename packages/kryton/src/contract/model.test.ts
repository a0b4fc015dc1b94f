/**
 * The contract's objects: rules of a creation, cloud-init, options, keys files, classification of failures, classes, doctor.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parseApiKeys } from "../auth/api-keys.ts";
import { builtInImages } from "../catalog/built-in.ts";
import { bearer, machineBody, start, type Parsed } from "../kryton.fixture.ts";
import { renderCloudConfig } from "../model/initialization.ts";
import { classify } from "../operations/failure.ts";
import { ProviderError } from "../provider-contract/contract.ts";
import { keys } from "../store/keyspace.ts";
import { backendOf, type ClusterStorageClass } from "../storage-inventory/contract.ts";
import { installedBackends, rate } from "../storage-inventory/inventory.ts";

test("every rule of a creation holds at both of its ends", async () => {
  await using api = await start();
  const base = machineBody("edge");
  const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1qLkV6m0m2Q3Q7mD0yqj0YwKxw0xv5xj7r2z3wq5bQ";
  const merged = (path: string, value: unknown): Record<string, unknown> => {
    const body = structuredClone(base);
    const parts = path.split(".");
    let at: Parsed = body;
    for (const part of parts.slice(0, -1)) at = at[part] ??= {};
    at[parts.at(-1) ?? ""] = value;
    return body;
  };
  const cases: readonly (readonly [string, readonly unknown[], readonly unknown[]])[] = [
    ["name", ["a", "a".repeat(63)], ["", "A", "-a", "a-", "a".repeat(64), "ä", undefined]],
    ["image", ["debian-13"], ["", "no such", "a".repeat(129), undefined]],
    ["compute.cpu", [1, 256], [0, 257, -1]],
    ["compute.memoryMiB", [1024, 2_097_152], [511, 2_097_153]],
    ["disk.sizeGiB", [16, 65_536], [15, 65_537]],
    ["network.networkId", ["", "n".repeat(253)], ["n".repeat(254), "ä".repeat(127)]],
    ["ttlMinutes", [0, 43_200], [-1, 43_201]],
    [
      "labels",
      [{ "a/b:c.d_e-f": "v w" }, { a: "" }, { a: "x".repeat(256) }],
      [
        { "": "x" },
        { "a b": "x" },
        { a: "x".repeat(257) },
        { a: "<" },
        Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`l${i}`, ""])),
      ],
    ],
    ["initialization.username", ["", "ci", "_x", "a".repeat(32)], ["A", "1a", "a".repeat(33), "a b"]],
    [
      "initialization.sshAuthorizedKeys",
      [
        [],
        [key],
        Array.from({ length: 32 }, () => key),
        [key.replace("ssh-ed25519", "sk-ssh-ed25519@openssh.com")],
      ],
      [Array.from({ length: 33 }, () => key), [`${key}\nx`], ["ssh-dss AAAA"], ["ssh-rsa"], ["ssh-rsa %%%"]],
    ],
    ["dockur.command", ["c".repeat(4_096)], ["c".repeat(4_097)]],
    ["dockur.username", ["u".repeat(64)], ["u".repeat(65), "ä".repeat(33)]],
    ["dockur.extraDisksGiB", [[1, 2, 65_536]], [[0], [65_537], [1, 2, 3, 4]]],
    ["dockur.domainOu", ["o".repeat(512)], ["o".repeat(513)]],
  ];
  for (const [path, good, bad] of cases) {
    for (const value of good) {
      const answer = await api.call("POST", "/api/v1/machines", merged(path, value));
      assert.equal(answer.status, 201, `${path}=${JSON.stringify(value)?.slice(0, 60)}: ${answer.text}`);
      assert.equal((await api.call("DELETE", `/api/v1/machines/${answer.json.id}`)).status, 204);
    }
    for (const value of bad) {
      const answer = await api.call("POST", "/api/v1/machines", merged(path, value));
      assert.equal(answer.status, 400, `${path}=${JSON.stringify(value)?.slice(0, 60)}`);
      assert.match(answer.json.error.code, /^INVALID_REQUEST$/);
    }
  }
});

test("a machine has the contract's fields and leaves empty ones out", async () => {
  await using api = await start();
  const plain = await api.machine("plain");
  assert.deepEqual(Object.keys(plain).sort(), [
    "consoleUrl",
    "createdAt",
    "id",
    "ipAddresses",
    "message",
    "progressPercent",
    "project",
    "provider",
    "providerRef",
    "spec",
    "state",
    "updatedAt",
  ]);
  assert.match(plain.id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.match(plain.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d*[1-9])?Z$/);
  assert.deepEqual(plain.providerRef, { provider: "demo", namespace: "default", name: "plain" });
  assert.deepEqual(plain.spec, {
    name: "plain",
    image: "debian-13",
    compute: { cpu: 1, memoryMiB: 1024 },
    disk: { sizeGiB: 20 },
    network: {},
  });
  const full = await api.machine("full", {
    ttlMinutes: 60,
    labels: { a: "b" },
    network: { networkId: "lan" },
    dockur: { username: "u", password: "p", productKey: "k" },
  });
  assert.equal(Date.parse(full.expiresAt) - Date.parse(full.createdAt), 3_600_000);
  assert.deepEqual(
    [full.spec.ttlMinutes, full.spec.labels, full.spec.network, full.spec.dockur],
    [60, { a: "b" }, { networkId: "lan" }, { username: "u" }],
  );
});

test("a damaged record is skipped and reported, and breaks neither lists nor creations", async () => {
  await using api = await start();
  const { id } = await api.machine("good");
  const damaged = await api.machine("damaged");
  for (const value of ["{", "[]", '{"machine":{"id":7}}']) {
    await api.store.txn({ success: [{ type: "put", key: keys.machine("default", damaged.id), value }] });
    const { status, json } = await api.call("GET", "/api/v1/machines");
    assert.deepEqual([status, json.items.map((item: Parsed) => item.id)], [200, [id]]);
    assert.equal((await api.call("GET", `/api/v1/machines/${damaged.id}`)).status, 404);
    assert.equal((await api.call("GET", "/api/v1/summary")).json.machines, 1);
    assert.equal((await api.call("GET", "/api/v1/jobs")).status, 200);
  }
  assert.ok((await api.machine("another")).id);
});

test("cloud-init is one JSON object that no string breaks out of", () => {
  const keys = ["ssh-ed25519 AAAA x"];
  const text = renderCloudConfig({
    hostname: "web\n#cloud-config",
    defaultUser: "debian",
    initialization: { sshAuthorizedKeys: keys },
  });
  const [first, ...rest] = text.split("\n");
  assert.equal(first, "#cloud-config");
  assert.deepEqual(JSON.parse(rest.join("\n")), {
    hostname: "web\n#cloud-config",
    manage_etc_hosts: true,
    ssh_pwauth: false,
    disable_root: true,
    users: [
      {
        name: "debian",
        lock_passwd: true,
        shell: "/bin/bash",
        sudo: "ALL=(ALL) NOPASSWD:ALL",
        ssh_authorized_keys: keys,
      },
    ],
    growpart: { mode: "auto", devices: ["/"], ignore_growroot_disabled: false },
    resize_rootfs: true,
    packages: ["qemu-guest-agent"],
    runcmd: [["systemctl", "enable", "--now", "qemu-guest-agent"]],
  });
  const bare = JSON.parse(
    renderCloudConfig({ hostname: "h", defaultUser: "debian", initialization: { username: "ci" } }).slice(14),
  );
  assert.deepEqual([bare.users[0].name, bare.users[0].ssh_authorized_keys], ["ci", undefined]);
  assert.throws(
    () => renderCloudConfig({ hostname: "h", defaultUser: undefined, initialization: undefined }),
    RangeError,
  );
});

test("the built-in catalog is the contract's table", () => {
  const windows = `windows-server-2025 2 4096 80 2025
windows-server-2022 2 4096 80 2022
windows-server-2019 2 4096 80 2019
windows-server-2016 2 4096 80 2016
windows-11-enterprise 4 8192 96 11e
windows-11-pro 4 8192 80 11
windows-11-ltsc 4 8192 64 11l
windows-10-enterprise 2 4096 64 10e
windows-10-pro 2 4096 64 10
windows-10-ltsc 2 4096 64 10l
windows-tiny11 2 4096 48 tiny11
windows-tiny11-core 2 2048 32 core11`;
  const linux = `ubuntu-26.04 ubuntu
ubuntu-24.04 ubuntu
ubuntu-22.04 ubuntu
debian-13 debian
debian-12 debian
rocky-10 rocky
rocky-9 rocky
almalinux-10 almalinux
almalinux-9 almalinux
centos-stream-10 cloud-user
fedora-44 fedora`;
  const of = (os: string) => builtInImages.filter((image) => image.os === os);
  assert.equal(
    of("windows")
      .map((image) =>
        [image.id, image.minCpu, image.minMemoryMiB, image.defaultDiskGiB, image.dockurVersion].join(" "),
      )
      .join("\n"),
    windows,
  );
  assert.equal(
    of("linux")
      .map((image) => `${image.id} ${image.defaultUser}`)
      .join("\n"),
    linux,
  );
  for (const image of of("linux")) {
    assert.deepEqual(
      [
        image.firmware,
        image.minCpu,
        image.minMemoryMiB,
        image.defaultDiskGiB,
        image.providers,
        image.tags,
        image.architecture,
      ],
      ["bios", 1, 1024, 20, ["libvirt", "kubevirt"], ["linux", "cloud-init"], "amd64"],
    );
    assert.match(image.sourceUrl ?? "", /^https:\/\/.*\.(img|qcow2)$/);
  }
  for (const image of of("windows"))
    assert.deepEqual([image.firmware, image.providers], ["efi", ["kubevirt", "dockur"]]);
});

test("failures of a provider are classified by kind, text and status, in that order", () => {
  const code = (
    kind: ConstructorParameters<typeof ProviderError>[0],
    message: string,
    kubernetesStatus?: number,
  ): string => {
    const { kryton, status } = classify(
      new ProviderError(kind, message, kubernetesStatus === undefined ? {} : { kubernetesStatus }),
    );
    return `${status} ${kryton}`;
  };
  assert.equal(code("not-found", "x"), "404 NOT_FOUND");
  assert.equal(code("conflict", "x"), "409 CONFLICT");
  assert.equal(code("unsupported", "x"), "501 UNSUPPORTED");
  assert.equal(code("invalid", "disk too small"), "400 INVALID_REQUEST");
  const texts: readonly (readonly [string, string])[] = [
    ['DataSource "a" not found', "400 IMAGE_NOT_READY"],
    ["insufficient permissions to clone", "400 CLONE_FORBIDDEN"],
    ["insufficient permissions in kryton-images", "400 CLONE_FORBIDDEN"],
    ["cannot create datavolumes/source", "400 CLONE_FORBIDDEN"],
    ["authorization failed for clone", "400 CLONE_FORBIDDEN"],
    ["no endpoints available for service", "503 PROVIDER_UNAVAILABLE"],
    ["failed calling webhook", "503 PROVIDER_UNAVAILABLE"],
    ["virt-api is down", "503 PROVIDER_UNAVAILABLE"],
    ["node has disk pressure", "503 NODE_DISK_PRESSURE"],
    ["pod was evicted", "503 NODE_DISK_PRESSURE"],
    ["admission webhook x", "400 ADMISSION_DENIED"],
    ["y denied the request", "400 ADMISSION_DENIED"],
    ["storageclass fast not found", "400 STORAGE_INVALID"],
    ["StorageClass fast is invalid", "400 STORAGE_INVALID"],
    ["ensure CDI clone access", "502 CLONE_RBAC_FAILED"],
  ];
  for (const [text, expected] of texts) assert.equal(code("failed", text), expected, text);
  assert.equal(
    code("failed", "virt-api is down", 404),
    "400 INVALID_REQUEST",
    "a 4xx of Kubernetes stays a 4xx",
  );
  assert.equal(code("failed", "already there", 409), "409 CONFLICT");
  assert.equal(code("failed", "no", 404), "400 INVALID_REQUEST");
  assert.equal(code("failed", "no", 422), "400 INVALID_REQUEST");
  assert.equal(code("failed", "no", 500), "502 PROVIDER_ERROR");
  assert.equal(classify(new Error("surprise")).kryton, "INTERNAL");
  assert.doesNotMatch(classify(new Error("/secret/path")).message, /secret/);
});

test("a keys file says what is wrong with it and never shows a digest", () => {
  const sha256 = createHash("sha256").update("t").digest("hex");
  const entry = { name: "a", sha256, role: "viewer", projects: ["ci"] };
  assert.equal(
    parseApiKeys(JSON.stringify({ keys: [entry, { ...entry, sha256: sha256.toUpperCase() }] }), "f").length,
    2,
  );
  const bad: unknown[] = [
    [entry],
    {},
    { keys: [] },
    ...[
      { name: "" },
      { role: "root" },
      { projects: [] },
      { sha256: "abc" },
      { sha256: `${sha256}00` },
      { expiresAt: "soon" },
    ].map((change) => ({ keys: [{ ...entry, ...change }] })),
  ];
  for (const text of ["{", ...bad.map((value) => JSON.stringify(value))]) {
    assert.throws(
      () => parseApiKeys(text, "keys.json"),
      (error) =>
        error instanceof Error &&
        error.message.startsWith("API keys file keys.json") &&
        !error.message.includes(sha256),
      text,
    );
  }
});

test("an expired key is nobody", async () => {
  const directory = await mkdtemp(join(tmpdir(), "kryton-expiry-"));
  try {
    const file = join(directory, "keys.json");
    const key = (token: string, expiresAt: string) => ({
      name: token,
      sha256: createHash("sha256").update(token).digest("hex"),
      role: "viewer",
      projects: ["*"],
      expiresAt,
    });
    await writeFile(
      file,
      JSON.stringify({ keys: [key("old", "2020-01-01T00:00:00Z"), key("new", "2999-01-01T00:00:00+02:00")] }),
    );
    await using api = await start({ env: { KRYTON_AUTH_MODE: "apikey", KRYTON_API_KEYS_FILE: file } });
    const me = async (token: string): Promise<number> =>
      (await api.call("GET", "/api/v1/me", undefined, bearer(token))).status;
    assert.deepEqual([await me("old"), await me("new")], [401, 200]);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test("the bearer scheme is case-sensitive and tokens are trimmed", async () => {
  await using api = await start({ keys: { tok: { role: "viewer", projects: ["*"] } } });
  const status = async (authorization: string): Promise<number> =>
    (await api.call("GET", "/api/v1/me", undefined, { authorization })).status;
  assert.equal(await status("Bearer   tok  "), 200);
  for (const wrong of [
    "bearer tok",
    "BEARER tok",
    "Basic tok",
    "tok",
    "Bearer",
    "Bearer ",
    "Bearer TOK",
    "Bearer tok tok",
  ])
    assert.equal(await status(wrong), 401, wrong);
});

test("storage classes are rated and ordered as the contract says", () => {
  assert.deepEqual(
    [
      "rook-ceph.rbd.csi.ceph.com",
      "rbd.csi.ceph.com",
      "cephfs.csi.ceph.com",
      "driver.longhorn.io",
      "rancher.io/local-path",
      "kubernetes.io/no-provisioner",
      "ebs.csi.aws.com",
    ].map(backendOf),
    ["rook-ceph", "rook-ceph", "rook-ceph", "longhorn", "local-path", "local-path", "other"],
  );
  const entry = (name: string, provisioner: string): ClusterStorageClass => ({
    name,
    provisioner,
    default: false,
    allowVolumeExpansion: true,
    volumeBindingMode: "Immediate",
  });
  const rated = rate(
    [
      entry("z-local", "rancher.io/local-path"),
      entry("plain", "x"),
      entry("capable", "y"),
      entry("atlas", "z"),
      entry("lh", "driver.longhorn.io"),
      entry("rook-plain", "rook-ceph.cephfs.csi.ceph.com"),
      entry("rook", "rook-ceph.rbd.csi.ceph.com"),
    ],
    [
      { name: "rook-old", driver: "rook-ceph.rbd.csi.ceph.com", default: false },
      { name: "rook-default", driver: "rook-ceph.rbd.csi.ceph.com", default: true },
      { name: "lh", driver: "driver.longhorn.io", default: false },
      { name: "y", driver: "y", default: false },
      { name: "local", driver: "rancher.io/local-path", default: false },
    ],
    ["atlas"],
  );
  assert.deepEqual(
    rated.map(({ name }) => name),
    ["rook", "rook-plain", "lh", "atlas", "capable", "plain", "z-local"],
  );
  assert.deepEqual(
    rated.filter(({ recommended }) => recommended).map(({ name }) => name),
    ["rook", "lh", "atlas"],
  );
  assert.equal(rated[0]?.snapshotClass, "rook-default");
  assert.equal(rated.at(-1)?.snapshotCapable, false, "local-path never is");
  assert.deepEqual(installedBackends(rated), { "rook-ceph": true, longhorn: true });
});

test("doctor fails only for what makes machines impossible, and warns with a remedy", async () => {
  await using api = await start({
    keys: { boss: { role: "admin", projects: ["*"] } },
    env: { GUESTKIT_BIN: "/none/guestkit" },
  });
  const { json, status } = await api.call("GET", "/api/v1/doctor", undefined, bearer("boss"));
  assert.deepEqual([status, json.provider, json.healthy], [200, "demo", true]);
  assert.deepEqual(
    json.findings.map(({ check, status: verdict }: Parsed) => `${check} ${verdict}`),
    [
      "auth pass",
      "projects pass",
      "catalog pass",
      "provider-health pass",
      "guestkit warn",
      "demo-provider pass",
    ],
  );
  assert.ok(json.findings.find(({ check }: Parsed) => check === "guestkit").hint);
});

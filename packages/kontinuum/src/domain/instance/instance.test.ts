/**
 * Discovery: names, which addresses may be dialled, the order of candidates, what is reported.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CodedError, SimulatedClock } from "@kontinuum/std";
import { parseCidrs } from "../../config/cidr.ts";
import { instance } from "../objects.fixture.ts";
import { mayDial } from "./dial-policy.ts";
import { instanceName } from "./instance-name.ts";
import { resolveAddress } from "./instance.add.ts";
import { maxCandidates, probeCandidates, type Probe, type ProbeAnswer } from "./instance.probe.ts";
import { discoveredStatus } from "./instance.status.ts";

const answer: ProbeAnswer = { talosVersion: "v1.13.0", interfaces: [], certificateKey: "k", uuid: "u-1" };
const options = { allowed: [], timeoutMs: 1, signal: new AbortController().signal };
const clock = new SimulatedClock();

test("the same address has the same name on every path", () => {
  const vectors = {
    "10.0.0.5": "instance-5c4ff76b8",
    "10.0.0.6": "instance-975d9c6f5",
    "192.168.1.10": "instance-799884b6b7",
    "fd00::1": "instance-55b9b79b4f",
  };
  for (const [address, name] of Object.entries(vectors)) assert.equal(instanceName(address), name);
});

test("rule 12: addresses that lead back into this host or into a cloud's services are not dialled", () => {
  const refused = [
    "127.0.0.1",
    "127.9.9.9",
    "0.0.0.0",
    "169.254.169.254",
    "100.100.100.200",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "ff02::1",
    "fd00:ec2::254",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "localhost",
    "metadata.google.internal",
    "",
  ];
  for (const address of refused) assert.equal(mayDial(address, []), false, address);
  for (const address of ["10.0.0.1", "192.168.0.1", "8.8.8.8", "fd00::1", "2001:db8::1"]) {
    assert.equal(mayDial(address, []), true, address);
  }
  const allowed = parseCidrs("test", "127.7.0.0/16");
  assert.equal(mayDial("127.7.0.9", allowed), true);
  assert.equal(mayDial("127.8.0.9", allowed), false);
});

test("candidates are tried in order, and refused ones are not dialled", async () => {
  const dialled: string[] = [];
  const probe: Probe = async (address) => {
    dialled.push(address);
    if (address === "10.0.0.2") return answer;
    throw new CodedError("unavailable", `nobody at port 49152 of ${address}`);
  };
  const found = await probeCandidates(
    { interfaces: ["10.0.0.1", "127.0.0.1", "10.0.0.2", "10.0.0.3"] },
    probe,
    options,
  );
  assert.equal(found.result, "found");
  assert.deepEqual(dialled, ["10.0.0.1", "10.0.0.2"]);
  const failed = await probeCandidates({ interfaces: ["10.0.0.1", "10.0.0.3"] }, probe, options);
  assert.deepEqual(failed, {
    result: "failed",
    message: "none of 2 addresses answered; last: 10.0.0.3 is not reachable",
  });
  assert.equal((await probeCandidates({}, probe, options)).result, "no-interfaces");
});

test("the number of candidates is bounded", async () => {
  let dialled = 0;
  const probe: Probe = async () => {
    dialled++;
    throw new CodedError("unavailable", "no");
  };
  await probeCandidates({ interfaces: Array.from({ length: 100 }, (_, i) => `10.0.0.${i}`) }, probe, options);
  assert.equal(dialled, maxCandidates);
});

test("a stopping controller does not report a failure", async () => {
  const abort = new AbortController();
  const probe: Probe = async () => {
    abort.abort();
    throw new CodedError("cancelled", "stopped");
  };
  await assert.rejects(
    probeCandidates({ interfaces: ["10.0.0.1"] }, probe, { ...options, signal: abort.signal }),
  );
});

test("status is written only on change, and facts outlive a failure", () => {
  const found = { result: "found", address: "10.0.0.1", answer } as const;
  const first = discoveredStatus(instance("a"), found, clock);
  assert.equal(first?.talos?.version, "v1.13.0");
  assert.equal(first?.conditions?.[0]?.reason, "Discovered");
  const seen = instance("a", { status: first });
  assert.equal(discoveredStatus(seen, found, clock), undefined);
  const lost = discoveredStatus(seen, { result: "failed", message: "none" }, clock);
  assert.equal(lost?.talos?.version, "v1.13.0");
  assert.deepEqual([lost?.conditions?.[0]?.status, lost?.conditions?.[0]?.reason], ["False", "ProbeFailed"]);
});

test("another machine at a known address is not taken for the known one", () => {
  const known = instance("a", {
    status: { identity: { address: "10.0.0.1", uuid: "u-1", certificateKey: "k" } },
  });
  const stranger = { result: "found", address: "10.0.0.1", answer: { ...answer, uuid: "u-2" } } as const;
  const status = discoveredStatus(known, stranger, clock);
  assert.equal(status?.conditions?.[0]?.reason, "IdentityChanged");
  assert.equal(status?.identity?.uuid, "u-1");
  const rebooted = {
    result: "found",
    address: "10.0.0.1",
    answer: { ...answer, certificateKey: "k2" },
  } as const;
  assert.equal(discoveredStatus(known, rebooted, clock)?.identity?.certificateKey, "k2");
});

test("an address is trimmed, and a name is resolved once", async () => {
  const network = {
    dial: () => Promise.reject(new Error("not used")),
    resolve: async (host: string) => (host === "node1" ? ["10.0.0.5", "10.0.0.6"] : [host]),
  };
  assert.deepEqual(await resolveAddress(" 10.0.0.5 ", network), { address: "10.0.0.5" });
  assert.deepEqual(await resolveAddress("node1", network), { address: "10.0.0.5", hostname: "node1" });
  await assert.rejects(resolveAddress("  ", network), /required/);
});

/**
 * Certificate shapes, judged by OpenSSL (through Node), not by the library that made them.
 */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { isCoded, SimulatedClock, systemEdges } from "@kontinuum/std";
import {
  adminValidityMs,
  createServerRequest,
  generateAuthority,
  isPair,
  issueAdminCertificate,
  issueCertificate,
  issueKubernetesAdminCertificate,
  issueServerCertificate,
  signServerRequest,
} from "./certificates.ts";
import { x509 } from "./x509.ts";

const clock = new SimulatedClock();
const edges = systemEdges({ clock });
const usagesOf = (pem: string): string[] => [...(new X509Certificate(pem).keyUsage ?? [])];
const serverAuth = "1.3.6.1.5.5.7.3.1";
const clientAuth = "1.3.6.1.5.5.7.3.2";

test("an admin certificate may be used by a client only, for a year", async () => {
  const ca = await generateAuthority({ organization: "talos", algorithm: "ed25519", edges });
  const { crt, key } = await issueAdminCertificate({ ca, edges, roles: ["os:reader", "os:admin"] });
  const certificate = new X509Certificate(crt);
  assert.equal(certificate.subject, "O=os:admin\nO=os:reader");
  assert.deepEqual(usagesOf(crt), [clientAuth]);
  assert.equal(certificate.subjectAltName, undefined);
  assert.equal(certificate.ca, false);
  assert(certificate.checkIssued(new X509Certificate(ca.crt)));
  assert(certificate.verify(new X509Certificate(ca.crt).publicKey));
  assert.equal(Date.parse(certificate.validFrom), clock.now());
  assert.equal(Date.parse(certificate.validTo), clock.now() + adminValidityMs);
  assert(isPair({ crt, key }, "admin"));
});

test("a server certificate holds its names and no more", async () => {
  const ca = await generateAuthority({ algorithm: "p256", edges });
  const { crt } = await issueServerCertificate({
    ca,
    edges,
    names: ["192.0.2.1", "2001:db8::1", "node-1.example"],
  });
  const certificate = new X509Certificate(crt);
  assert.equal(certificate.subject, "CN=node-1.example");
  assert.deepEqual(usagesOf(crt), [serverAuth]);
  assert(certificate.checkIP("192.0.2.1"));
  assert(certificate.checkIP("2001:db8::1"));
  assert(certificate.checkHost("node-1.example"));
  assert.equal(certificate.checkIP("192.0.2.2"), undefined);
  assert(certificate.verify(new X509Certificate(ca.crt).publicKey));
});

test("a Kubernetes admin certificate is a member of system:masters", async () => {
  const ca = await generateAuthority({ organization: "kubernetes", algorithm: "p256", edges });
  const { crt } = await issueKubernetesAdminCertificate({ ca, edges });
  const certificate = new X509Certificate(crt);
  assert.equal(certificate.subject, "O=system:masters\nCN=admin");
  assert.equal(Date.parse(certificate.validFrom), clock.now() - 10_000);
  const flags = new x509.X509Certificate(crt).extensions.find(
    (entry) => entry instanceof x509.KeyUsagesExtension,
  );
  assert.equal(flags?.usages, x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyEncipherment);
  assert.equal(flags?.critical, true);
});

test("a CA states its shape: critical CA without path length, random key id, no issuer id", async () => {
  const { crt } = await generateAuthority({ organization: "etcd", algorithm: "p256", edges });
  const certificate = new x509.X509Certificate(crt);
  const constraints = certificate.extensions.find((entry) => entry instanceof x509.BasicConstraintsExtension);
  assert.deepEqual(
    [constraints?.ca, constraints?.pathLength, constraints?.critical],
    [true, undefined, true],
  );
  const keyId = certificate.extensions.find((entry) => entry instanceof x509.SubjectKeyIdentifierExtension);
  assert.equal(keyId?.keyId.length, 40);
  assert(!certificate.extensions.some((entry) => entry instanceof x509.AuthorityKeyIdentifierExtension));
  assert.deepEqual(usagesOf(crt), [serverAuth, clientAuth]);
});

test("a worker's request is signed for serving only, without its organization", async () => {
  const ca = await generateAuthority({ organization: "talos", algorithm: "ed25519", edges });
  const { csr, key } = await createServerRequest({
    commonName: "worker-1",
    names: ["192.0.2.5", "worker-1"],
  });
  const crt = await signServerRequest({ ca, csr, edges });
  const certificate = new X509Certificate(crt);
  assert.equal(certificate.subject, "CN=worker-1");
  assert.deepEqual(usagesOf(crt), [serverAuth]);
  assert(certificate.checkIP("192.0.2.5"));
  assert(isPair({ crt, key }, "worker"));
  const signatureLine = csr.split("\n").at(-4) ?? "";
  const forged = csr.replace(signatureLine, signatureLine.replaceAll(/[A-M]/g, "N"));
  for (const bad of ["", "not a request", forged, "x".repeat(20_000)]) {
    await assert.rejects(signServerRequest({ ca, csr: bad, edges }), (error) =>
      isCoded(error, "invalid_argument"),
    );
  }
});

test("a CA key in another label or form is refused without being shown", async () => {
  const ca = await generateAuthority({ algorithm: "ed25519", edges });
  const key = ca.key.replaceAll("ED25519 PRIVATE KEY", "OPENSSH PRIVATE KEY");
  await assert.rejects(
    issueCertificate({ ca: { ...ca, key }, edges, usage: "client" }),
    (error) => isCoded(error, "invalid_argument") && !error.message.includes(ca.key.split("\n")[1] ?? "-"),
  );
});

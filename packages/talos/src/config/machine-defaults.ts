/**
 * Values that every contract writes alike: admission control, audit policy, encoded key pairs.
 */
import type { CertificateAndKey } from "../pki/certificates.ts";

/** Base64 of a PEM text, as the main document holds keys and certificates. */
export function base64Pem(pem: string): string {
  return Buffer.from(pem, "utf8").toString("base64");
}

/** `{crt, key}` for the main document; a worker never gets a CA's key. */
export function encodedPair(pair: CertificateAndKey, withKey: boolean): { crt: string; key: string } {
  return { crt: base64Pem(pair.crt), key: withKey ? base64Pem(pair.key) : "" };
}

/** Configuration of the PodSecurity admission plugin: baseline enforced, restricted told. */
export function podSecurityConfiguration(): object {
  return {
    apiVersion: "pod-security.admission.config.k8s.io/v1alpha1",
    defaults: {
      audit: "restricted",
      "audit-version": "latest",
      enforce: "baseline",
      "enforce-version": "latest",
      warn: "restricted",
      "warn-version": "latest",
    },
    exemptions: { namespaces: ["kube-system"], runtimeClasses: [], usernames: [] },
    kind: "PodSecurityConfiguration",
  };
}

/** Audit policy: metadata of everything. */
export function auditPolicy(): object {
  return { apiVersion: "audit.k8s.io/v1", kind: "Policy", rules: [{ level: "Metadata" }] };
}

/** Keeps load balancers of the cluster away from control-plane nodes. */
export const noLoadBalancerLabel = "node.kubernetes.io/exclude-from-external-load-balancers";

/** Container images at a Kubernetes version (without `v`). */
export const images = {
  kubelet: (version: string): string => `ghcr.io/siderolabs/kubelet:v${version}`,
  component: (name: string, version: string): string => `registry.k8s.io/${name}:v${version}`,
};

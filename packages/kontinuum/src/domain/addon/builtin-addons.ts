/**
 * The addons every cluster gets, with their defaults.
 *
 * Why these values: Talos serves the Kubernetes API to its own node at localhost:7445 (KubePrism), so Cilium
 * can replace kube-proxy without knowing another address. The Gateway API definitions are too large for
 * a Helm release Secret (1 MiB), so they are applied instead of installed. ALPN and appProtocol let gRPC
 * through the gateway. Two operators cannot share one node's host network, so a single node runs one.
 */
import type { JsonObject } from "@kontinuum/std";
import type { ProvisioningMethod } from "../../kinds/index.ts";

/** Defaults of one addon. A value `{ $cel: "…" }` is computed, see `addon.values.ts`. */
export interface BuiltinAddon {
  readonly release: string;
  /** Absent for a chart from an OCI registry. */
  readonly repo?: string;
  readonly chart: string;
  readonly version: string;
  readonly namespace: string;
  readonly priority: number;
  readonly method: ProvisioningMethod;
  readonly values: JsonObject;
}

/** In the order they are made. */
export const builtinAddons: readonly BuiltinAddon[] = [
  {
    release: "gateway-api-crds",
    chart: "oci://docker.io/envoyproxy/gateway-crds-helm",
    version: "1.9.0",
    namespace: "kontinuum-system",
    priority: 50,
    method: "KubectlApply",
    values: { crds: { gatewayAPI: { enabled: true, channel: "standard" } } },
  },
  {
    release: "cilium",
    repo: "https://helm.cilium.io",
    chart: "cilium",
    version: "1.20.1",
    namespace: "kube-system",
    priority: 100,
    method: "HelmUpgradeInstall",
    values: {
      kubeProxyReplacement: true,
      k8sServiceHost: "localhost",
      k8sServicePort: { $cel: "ctx.talos.kubePrism.port" },
      envoy: { enabled: true },
      gatewayAPI: { enabled: true, enableAlpn: true, enableAppProtocol: true },
      l2announcements: { enabled: true },
      nodeIPAM: { enabled: true },
      operator: { replicas: { $cel: "ctx.taloscluster.status.controlPlane.replicas > 1 ? 2 : 1" } },
      ipam: { mode: "kubernetes" },
      cgroup: { autoMount: { enabled: false }, hostRoot: "/sys/fs/cgroup" },
      securityContext: {
        capabilities: {
          ciliumAgent: [
            "CHOWN",
            "KILL",
            "NET_ADMIN",
            "NET_RAW",
            "IPC_LOCK",
            "SYS_ADMIN",
            "SYS_RESOURCE",
            "DAC_OVERRIDE",
            "FOWNER",
            "SETGID",
            "SETUID",
          ],
          cleanCiliumState: ["NET_ADMIN", "SYS_ADMIN", "SYS_RESOURCE"],
        },
      },
    },
  },
  {
    release: "cert-manager",
    repo: "https://charts.jetstack.io",
    chart: "cert-manager",
    version: "v1.21.1",
    namespace: "kontinuum-system",
    priority: 100,
    method: "HelmUpgradeInstall",
    values: { crds: { enabled: true }, config: { gatewayAPI: { enabled: true } } },
  },
];

/** The defaults of a release, if it is one of ours. */
export const builtinAddon = (release: string): BuiltinAddon | undefined =>
  builtinAddons.find((addon) => addon.release === release);

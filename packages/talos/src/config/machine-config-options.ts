/**
 * What a machine configuration is made from. Plain data, the same for every version contract; how a
 * contract writes it down is the generators' business.
 */
import { CodedError } from "@kontinuum/std";
import ipaddr from "ipaddr.js";
import type { SecretsBundle } from "../pki/secrets-bundle.ts";

/** Role of a machine in its cluster. */
export type MachineType = "controlplane" | "worker";

/** Which disk Talos is installed on. An empty selector means any writable disk. */
export interface DiskSelector {
  /** `<= 1TB`, `> 100GB`, … */
  readonly size?: string;
  readonly model?: string;
  readonly serial?: string;
  readonly modalias?: string;
  readonly uuid?: string;
  readonly wwid?: string;
  readonly type?: "ssd" | "hdd" | "nvme" | "sd";
  readonly busPath?: string;
}

/** How Talos is installed. */
export interface InstallOptions {
  /** Device path, such as `/dev/sda`. One of `disk` and `diskSelector` is needed on metal. */
  readonly disk?: string;
  readonly diskSelector?: DiskSelector;
  /** Installer image; extensions come in through it (see `installerImage`). Default: the node's own. */
  readonly image?: string;
  /** Wipe the whole disk first. Default false. */
  readonly wipe?: boolean;
  /** Kernel arguments; ignored from contract 1.14 on, where the image carries them. */
  readonly extraKernelArgs?: readonly string[];
}

/** A static route. Without destination it is the default route. */
export interface RouteOptions {
  readonly destination?: string;
  readonly gateway: string;
  readonly metric?: number;
}

/** What every kind of link can have. */
interface CommonLinkOptions {
  readonly name: string;
  /** CIDR texts. */
  readonly addresses?: readonly string[];
  readonly routes?: readonly RouteOptions[];
  readonly mtu?: number;
  /** Ask for an address by DHCPv4. Default false. */
  readonly dhcp?: boolean;
}

/** A network link to configure. */
export type LinkOptions =
  | (CommonLinkOptions & { readonly kind?: "ethernet" })
  | (CommonLinkOptions & {
      readonly kind: "bond";
      readonly links: readonly string[];
      /** Kernel bond mode, such as `802.3ad` or `active-backup`. */
      readonly mode: string;
      readonly hashPolicy?: string;
      readonly lacpRate?: "slow" | "fast";
      /** Milliseconds between link checks. */
      readonly miimon?: number;
    })
  | (CommonLinkOptions & { readonly kind: "vlan"; readonly parent: string; readonly vlanId: number });

/** Network of machine and cluster. */
export interface NetworkOptions {
  /** `flannel` (default), `none`, or manifests of another plugin. */
  readonly cni?: "flannel" | "none" | { readonly urls: readonly string[] };
  /** Default `cluster.local`. */
  readonly dnsDomain?: string;
  /** Default `10.244.0.0/16`; one per family for dual stack. */
  readonly podSubnets?: readonly string[];
  /** Default `10.96.0.0/12`; one per family for dual stack. */
  readonly serviceSubnets?: readonly string[];
  /** False beside a plugin that replaces kube-proxy, such as Cilium. Default true. */
  readonly kubeProxy?: boolean;
  /** Node-local load balancer of the API servers: its port (default 7445), or false for none. */
  readonly kubePrism?: number | false;
  /** Shared address of the control plane, held by one member at a time. Control plane only. */
  readonly vip?: { readonly address: string; readonly link: string };
  readonly links?: readonly LinkOptions[];
  readonly nameservers?: readonly string[];
  readonly timeServers?: readonly string[];
}

/** One key that opens an encrypted volume. */
export type DiskKeyOptions =
  | { readonly kind: "kms"; readonly endpoint: string }
  | { readonly kind: "tpm" }
  | { readonly kind: "nodeID" }
  | { readonly kind: "static"; readonly passphrase: string };

/** Volumes to encrypt (LUKS2), each with its keys in slot order. */
export interface EncryptionOptions {
  readonly state?: readonly DiskKeyOptions[];
  readonly ephemeral?: readonly DiskKeyOptions[];
}

/** Everything a machine configuration is made from. */
export interface MachineConfigOptions {
  readonly type: MachineType;
  readonly clusterName: string;
  /** `https://<host>:<port>` of the cluster's API: a load balancer, a VIP or the first member. */
  readonly endpoint: string;
  /** With or without `v`. */
  readonly kubernetesVersion: string;
  /** Decides the version contract, 1.11 to 1.14. */
  readonly talosVersion: string;
  readonly bundle: SecretsBundle;
  /** Default: the node makes a stable name of its own. */
  readonly hostname?: string;
  /** Further names and addresses in the certificates of Talos and of the API server. */
  readonly certSans?: readonly string[];
  readonly allowSchedulingOnControlPlanes?: boolean;
  readonly install?: InstallOptions;
  readonly network?: NetworkOptions;
  readonly encryption?: EncryptionOptions;
  readonly sysctls?: Readonly<Record<string, string>>;
  /** Registry host to mirror URLs. */
  readonly registryMirrors?: Readonly<Record<string, readonly string[]>>;
  /** Find cluster members through the discovery service. Default true. */
  readonly discovery?: boolean;
  /** Port the API server listens on, when it differs from the endpoint's. */
  readonly localApiServerPort?: number;
  /** Strategic merge or RFC 6902 patches, applied in order after generation. */
  readonly patches?: readonly string[];
}

/** Defaults of the two cluster networks. */
export const defaultSubnets = { pods: ["10.244.0.0/16"], services: ["10.96.0.0/12"] } as const;
/** Port of KubePrism. */
export const kubePrismPort = 7445;

/** The endpoint URL. Fails with `invalid_argument` unless it is `https://<host>[:port]`. */
export function parseEndpoint(endpoint: string): URL {
  let url: URL | undefined;
  try {
    url = new URL(endpoint);
  } catch {
    url = undefined;
  }
  const plain = url && !url.username && !url.password && !url.search && !url.hash && url.pathname === "/";
  if (url?.protocol !== "https:" || !url.hostname || !plain) {
    throw new CodedError(
      "invalid_argument",
      `${JSON.stringify(endpoint.slice(0, 256))} is not a cluster endpoint: expected https://<host>:<port>`,
    );
  }
  return url;
}

/** `https://<address>:6443`, with an IPv6 address in brackets. */
export function endpointOf(address: string, port = 6443): string {
  return `https://${ipaddr.IPv6.isValid(address) ? `[${address}]` : address}:${port}`;
}

/**
 * The installer image of a schematic (a set of system extensions) at the image factory, or the plain
 * installer without one.
 */
export function installerImage(options: {
  /** Talos release, such as `v1.13.0`. */
  readonly talosVersion: string;
  /** Schematic id: 64 hexadecimal digits. */
  readonly schematic?: string;
  readonly secureBoot?: boolean;
  /** Default `factory.talos.dev`. */
  readonly factory?: string;
}): string {
  const tag = options.talosVersion.startsWith("v") ? options.talosVersion : `v${options.talosVersion}`;
  if (options.schematic === undefined) return `ghcr.io/siderolabs/installer:${tag}`;
  if (!/^[0-9a-f]{64}$/.test(options.schematic)) {
    throw new CodedError("invalid_argument", "an image factory schematic id is 64 hexadecimal digits");
  }
  const flavour = options.secureBoot ? "metal-installer-secureboot" : "metal-installer";
  return `${options.factory ?? "factory.talos.dev"}/${flavour}/${options.schematic}:${tag}`;
}

/**
 * The objects that expose a zone's server under its domain: certificate issuer, gateway, certificate, route.
 * Pure, but for asking whether the certificate is there.
 */
import { isObject, stringAt, at, type JsonObject } from "@kontinuum/std";
import type { Config } from "../../config/config.ts";
import { systemNamespace, workloadName } from "../../kinds/index.ts";
import type { Downstream } from "../downstream/downstream.ts";
import type { RestPaths } from "../downstream/rest-paths.ts";

const name = workloadName;
const metadata = { name, namespace: systemNamespace };

/** The objects for `host`, in the order they are made. */
export function networkObjects(config: Config, host: string): JsonObject[] {
  return [
    {
      apiVersion: "cert-manager.io/v1",
      kind: "ClusterIssuer",
      metadata: { name },
      spec: {
        acme: {
          email: config.values.KONTINUUM_ACME_EMAIL,
          server: config.values.KONTINUUM_ACME_SERVER,
          privateKeySecretRef: { name: "kontinuum-account-key" },
          solvers: [
            {
              http01: {
                gatewayHTTPRoute: { parentRefs: [{ name, namespace: systemNamespace, kind: "Gateway" }] },
              },
            },
          ],
        },
      },
    },
    {
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "Gateway",
      metadata,
      spec: {
        gatewayClassName: "cilium",
        listeners: [
          { name: "http", port: 80, protocol: "HTTP" },
          {
            name: "https",
            port: 443,
            protocol: "HTTPS",
            hostname: host,
            tls: { mode: "Terminate", certificateRefs: [{ name: "kontinuum-tls" }] },
          },
        ],
      },
    },
    {
      apiVersion: "cert-manager.io/v1",
      kind: "Certificate",
      metadata,
      spec: {
        dnsNames: [host],
        secretName: "kontinuum-tls",
        issuerRef: { name, kind: "ClusterIssuer", group: "cert-manager.io" },
      },
    },
    {
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "HTTPRoute",
      metadata,
      spec: {
        parentRefs: [{ name, sectionName: "https" }],
        hostnames: [host],
        rules: [{ backendRefs: [{ name, port: 80 }] }],
      },
    },
  ];
}

/** Whether the certificate was issued. */
export async function isCertificateReady(
  { client }: Downstream,
  paths: RestPaths,
  signal: AbortSignal,
): Promise<boolean> {
  const reference = { apiVersion: "cert-manager.io/v1", kind: "Certificate", metadata };
  const path = await paths.pathOf(reference, systemNamespace, signal);
  const conditions = at(await client.request("GET", path, { signal }), "status", "conditions");
  if (!Array.isArray(conditions)) return false;
  return conditions
    .filter(isObject)
    .some((one) => stringAt(one, "type") === "Ready" && stringAt(one, "status") === "True");
}

/**
 * `@kontinuum/talos`: Talos for Node. Machine API client, secrets bundle, machine configuration,
 * key management service. Knows nothing of Kontinuum's kinds.
 */
export * from "./client/addresses.ts";
export { defaultTimeoutMs, type CallOptions } from "./client/call.ts";
export * from "./client/client.ts";
export * from "./client/credentials.ts";
export * from "./client/facts.ts";
export * from "./client/probe.ts";
export type {
  ApplyMode,
  ApplyRequest,
  ApplyResult,
  EtcdMemberFact,
  HealthCheckRequest,
  ResetRequest,
  ServiceFact,
  VersionFact,
} from "./client/requests.ts";
export * from "./client/resource-kind.ts";
export { fingerprintOf } from "./client/fingerprint.ts";
export type { TalosPeer } from "./client/grpc-session.ts";
export type { NodeResource, ResourceEvent, StateReader, WatchOptions } from "./client/state-reader.ts";
export * from "./client/talos-error.ts";
export type { UpgradeRequest, UpgradeResult } from "./client/upgrade.ts";
export * from "./pki/pem.ts";
export {
  adminValidityMs,
  caValidityMs,
  createServerRequest,
  generateAuthority,
  issueAdminCertificate,
  issueCertificate,
  issueKubernetesAdminCertificate,
  issueServerCertificate,
  serverValidityMs,
  signServerRequest,
  type CertificateAndKey,
  type LeafOptions,
} from "./pki/certificates.ts";
export * from "./pki/secrets-bundle.ts";
export * from "./config/version-contract.ts";
export * from "./config/machine-config-options.ts";
export {
  parseConfigDocuments,
  serializeConfigDocuments,
  type ConfigDocument,
} from "./config/config-document.ts";
export { generateConfigDocuments, generateMachineConfig } from "./config/generate-machine-config.ts";
export { patchMachineConfig } from "./config/patch.ts";
export * from "./config/kubeconfig.ts";
export * from "./config/talosconfig.ts";
export {
  readMachineConfig,
  type ConfiguredCa,
  type InstallFacts,
  type MachineConfigFacts,
  type VolumeKeyFacts,
} from "./config/machine-config-facts.ts";
export * from "./config/validate-machine-config.ts";
export * from "./config/validate-for-node.ts";
export * from "./simulator/index.ts";
export * from "./kms/kms-client.ts";
export {
  developmentKmsService,
  kmsService,
  parseKmsRootKey,
  type KmsCaller,
  type KmsOptions,
} from "./kms/kms-service.ts";
export { kmsPort, parseKmsEndpoint } from "./kms/kms-endpoint.ts";
export { serveKms, type KmsServer, type KmsServerOptions } from "./kms/serve-kms.ts";

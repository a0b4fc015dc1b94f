/**
 * `@kontinuum/storage`: a revisioned key-value store with etcd's semantics over several databases.
 */
export * from "./contract.ts";
export { openStore, storeUrlForms, type OpenOptions } from "./open.ts";
export { defaultRetention, type Retention } from "./engine/compactor.ts";
export { faultCodes, leaseText, reasonOf, type FaultReason } from "./faults.ts";
export type { EtcdAccess, EtcdAuthorizer, EtcdCall, EtcdWrite } from "./etcd/access.ts";
export {
  etcdServices,
  serveEtcd,
  type EtcdFaceOptions,
  type EtcdServer,
  type ServeEtcdOptions,
} from "./etcd/services.ts";
export { grpcHandler, type GrpcHandler } from "./etcd/grpc-handler.ts";
export { connectEtcd } from "./drivers/etcd/etcd-store.ts";
export type { EtcdTarget, EtcdTls } from "./drivers/etcd/channel.ts";
export {
  createKeyFile,
  KeyRing,
  readKeyFile,
  type EncryptionKeys,
  type KmsPlugin,
} from "./encryption/key-file.ts";
export { EncryptedStore, type EncryptionOptions } from "./encryption/encrypted-store.ts";
export type { EncryptionKey } from "./encryption/envelope.ts";
export { writeBackup, type BackupOptions } from "./operations/backup.ts";
export { verifyBackup, type BackupSource, type BackupSummary } from "./operations/backup-file.ts";
export { copyStore, restoreBackup, type Restored, type RestoreOptions } from "./operations/restore.ts";
export { backupToFile, compactStore, verifyStore, type StoreFindings } from "./operations/operations.ts";

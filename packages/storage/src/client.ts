/**
 * `@kontinuum/storage/client`: what a program needs that uses a store and serves none. It loads only the driver that
 * is opened; the whole package, with the etcd face and backups, is `@kontinuum/storage`.
 */
export * from "./contract.ts";
export { openStore } from "./open.ts";
export { reasonOf } from "./faults.ts";

/**
 * `@kontinuum/controller`: a controller runtime for Node. Knows no machines and no clusters.
 */
export { Backoff, exponential, jitter, TokenBucket, type BackoffOptions } from "./backoff.ts";
export { CachedClient, type Informers } from "./cached-client.ts";
export * from "./client.ts";
export * from "./condition.ts";
export * from "./contract.ts";
export * from "./controller-definition.ts";
export * from "./core-resources.ts";
export * from "./fetch-transport.ts";
export {
  Informer,
  type AnyInformer,
  type CacheSelection,
  type ChangeHandler,
  type InformerOptions,
} from "./informer.ts";
export * from "./kubeconfig.ts";
export * from "./leader-election.ts";
export * from "./lease-lock.ts";
export * from "./manager.ts";
export * from "./metadata.ts";
export * from "./object.ts";
export * from "./resource.ts";
export * from "./selector.ts";
export * as shape from "./shape.ts";
export * from "./status.ts";
export * from "./transport.ts";
export { readWatch, type OnUnreadable, type WatchEvent } from "./watch.ts";
export { WorkQueue, type QueueStats, type WorkQueueOptions } from "./work-queue.ts";
export type { CacheChange, IndexFunction } from "./object-cache.ts";
export * from "./zone-lease.ts";

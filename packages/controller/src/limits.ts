/**
 * Every bound of this package, by name. A bound is reached in a test or it is not a bound.
 */

/** Bounds of client, informer and queue. */
export const limits = {
  /** Objects asked for per page of a list. */
  pageSize: 500,
  /** Pages of one list; together with `pageSize` five million objects. */
  pages: 10_000,
  /** Bytes of one answer that is read as a whole (one page of a list at most). */
  responseBytes: 128 * 1024 * 1024,
  /** Bytes of one line of a watch stream: one event. */
  watchLineBytes: 16 * 1024 * 1024,
  /** Retries of one request that the server answered with `Retry-After`. */
  requestRetries: 5,
  /** Longest wait before such a retry, milliseconds. */
  retryAfterMs: 30_000,
  /** Objects deleted through a cached client whose deletion the watch has not confirmed yet. */
  tombstones: 10_000,
  /** Distinct keys in one work queue. */
  queueKeys: 1_000_000,
  /** Bytes of a kubeconfig. */
  kubeconfigBytes: 1024 * 1024,
} as const;

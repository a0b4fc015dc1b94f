/**
 * Leader election with a fence: one process leads, and knows in time when it no longer does.
 *
 * A follower judges the leader's lease by how long it has *seen* it unchanged, so clocks need not agree. A
 * leader counts from before it sent its last successful renewal and stops (its signal aborts) at the renew
 * deadline, before any follower may take over. `token` rises with every change of leader: whoever writes
 * outside the API server passes it along, and the other side refuses a lower one.
 *
 * Source: Kubernetes documentation of leases and of leader election in client-go (15 s, 10 s, 2 s).
 */
import { CodedError, isCoded, messageOf, type Edges, type Log } from "@kontinuum/std";
import { jitter } from "./backoff.ts";
import type { Client } from "./client.ts";
import { formatMicroTime } from "./condition.ts";
import { leases, type Lease } from "./core-resources.ts";
import { ensureNamespace } from "./lease-lock.ts";

/** Options of {@link LeaderElection}. */
export interface LeaderElectionOptions {
  /** Must ask the server. */
  readonly client: Client;
  readonly edges: Edges;
  readonly namespace: string;
  readonly name: string;
  /** Unique per process. */
  readonly holder: string;
  /** Default 15,000; whole seconds. */
  readonly leaseMs?: number;
  /** A leader that could not renew for so long stops. Below `leaseMs`. Default 10,000. */
  readonly renewDeadlineMs?: number;
  /** Between attempts. Default 2,000. */
  readonly retryMs?: number;
}

/** What a leader gets. */
export interface Leadership {
  /** Aborts when leadership ends. */
  readonly signal: AbortSignal;
  /** Rises with every change of leader. */
  readonly token: number;
  /** Fails with `failed_precondition` unless this process certainly leads right now. */
  check(): void;
}

interface Observed {
  readonly resourceVersion: string | undefined;
  readonly at: number;
}

/** See the module's comment. */
export class LeaderElection {
  readonly #options: LeaderElectionOptions;
  readonly #edges: Edges;
  readonly #log: Log;
  readonly #leaseMs: number;
  readonly #renewDeadlineMs: number;
  readonly #retryMs: number;
  #observed: Observed = { resourceVersion: undefined, at: 0 };
  /** The last read showed another holder. */
  #isLost = false;

  constructor(options: LeaderElectionOptions) {
    this.#options = options;
    this.#edges = options.edges;
    this.#log = options.edges.log.with({ lease: options.name, holder: options.holder });
    this.#leaseMs = options.leaseMs ?? 15_000;
    this.#renewDeadlineMs = options.renewDeadlineMs ?? 10_000;
    this.#retryMs = options.retryMs ?? 2_000;
    if (this.#renewDeadlineMs >= this.#leaseMs || this.#retryMs >= this.#renewDeadlineMs) {
      throw new CodedError("invalid_argument", "leader election needs retryMs < renewDeadlineMs < leaseMs");
    }
  }

  /**
   * Competes until `signal` aborts, and runs `lead` each time this process leads. `lead` returns when its
   * signal aborts; when it returns earlier or fails, leadership is given up and sought again.
   */
  async run(signal: AbortSignal, lead: (leadership: Leadership) => Promise<void>): Promise<void> {
    while (!signal.aborted) {
      const startedAt = this.#edges.clock.monotonic();
      const lease = await this.#attempt(signal);
      if (lease) await this.#lead(lease, startedAt, signal, lead);
      await this.#pause(signal);
    }
  }

  async #lead(
    lease: Lease,
    acquiredAt: number,
    signal: AbortSignal,
    lead: (leadership: Leadership) => Promise<void>,
  ): Promise<void> {
    const end = new AbortController();
    const clock = this.#edges.clock;
    let renewedAt = acquiredAt;
    const isCertain = (): boolean =>
      !signal.aborted && !end.signal.aborted && clock.monotonic() - renewedAt < this.#renewDeadlineMs;
    const work = this.#work(lead, {
      signal: AbortSignal.any([signal, end.signal]),
      token: lease.spec?.leaseTransitions ?? 0,
      check: () => {
        if (isCertain()) return;
        throw new CodedError(
          "failed_precondition",
          `${this.#options.holder} no longer leads ${this.#options.name}`,
        );
      },
    }).finally(() => end.abort());
    this.#log.info("leading");
    while (isCertain()) {
      // The fence must close on time even while a renewal hangs.
      const deadline = clock.timer(this.#renewDeadlineMs - (clock.monotonic() - renewedAt), () =>
        end.abort(),
      );
      const either = AbortSignal.any([signal, end.signal]);
      await this.#pause(either);
      const startedAt = clock.monotonic();
      const renewed = either.aborted ? undefined : await this.#attempt(either);
      deadline.clear();
      if (renewed) renewedAt = startedAt;
      else if (this.#isLost) end.abort();
    }
    end.abort();
    await work;
    this.#log.info("no longer leading");
    if (signal.aborted) await this.#release();
  }

  async #work(lead: (leadership: Leadership) => Promise<void>, leadership: Leadership): Promise<void> {
    try {
      await lead(leadership);
    } catch (error) {
      if (!leadership.signal.aborted)
        this.#log.error("the leader's work failed", { reason: messageOf(error) });
    }
  }

  /** One try to take or renew; the lease as held by this process, or `undefined`. */
  async #attempt(signal: AbortSignal): Promise<Lease | undefined> {
    try {
      return await this.#takeOrRenew(signal);
    } catch (error) {
      if (isCoded(error, "conflict") || isCoded(error, "already_exists") || signal.aborted) return undefined;
      this.#log.warn("the lease could not be read or written", { reason: messageOf(error) });
      return undefined;
    }
  }

  async #takeOrRenew(signal: AbortSignal): Promise<Lease | undefined> {
    const { client, namespace, name, holder } = this.#options;
    const clock = this.#edges.clock;
    const lease = await client.find(leases, { namespace, name }, { signal });
    const now = formatMicroTime(clock.now());
    const leaseDurationSeconds = Math.ceil(this.#leaseMs / 1000);
    if (!lease) {
      await ensureNamespace(client, namespace, { signal });
      const spec = {
        holderIdentity: holder,
        leaseDurationSeconds,
        acquireTime: now,
        renewTime: now,
        leaseTransitions: 0,
      };
      const created = {
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: { namespace, name },
        spec,
      };
      return client.create(leases, created, { signal });
    }
    if (lease.metadata.resourceVersion !== this.#observed.resourceVersion) {
      this.#observed = { resourceVersion: lease.metadata.resourceVersion, at: clock.monotonic() };
    }
    const other = lease.spec?.holderIdentity;
    const isMine = other === holder;
    this.#isLost = !isMine;
    const durationMs = (lease.spec?.leaseDurationSeconds ?? leaseDurationSeconds) * 1000;
    const isFree = !other || clock.monotonic() - this.#observed.at > durationMs;
    if (!isMine && !isFree) return undefined;
    const taken = isMine
      ? {}
      : { acquireTime: now, leaseTransitions: (lease.spec?.leaseTransitions ?? 0) + 1 };
    const spec = { ...lease.spec, holderIdentity: holder, leaseDurationSeconds, renewTime: now, ...taken };
    const updated = await client.update(leases, { ...lease, spec }, { signal });
    this.#isLost = false;
    return updated;
  }

  /** Gives the lease back on an orderly stop, so that the next leader need not wait. */
  async #release(): Promise<void> {
    const { client, namespace, name, holder } = this.#options;
    try {
      const lease = await client.find(leases, { namespace, name });
      if (lease?.spec?.holderIdentity !== holder) return;
      await client.update(leases, { ...lease, spec: { ...lease.spec, holderIdentity: "" } });
    } catch (error) {
      this.#log.info("the lease was not released; it expires by itself", { reason: messageOf(error) });
    }
  }

  #pause(signal: AbortSignal): Promise<void> {
    return this.#edges.clock.sleep(jitter(this.#retryMs, this.#edges.random), signal).catch(() => {});
  }
}

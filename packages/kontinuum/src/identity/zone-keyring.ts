/**
 * The keys of all zones, as this hub knows them at this moment.
 *
 * It watches Zones and their `-etcd-auth` Secrets, so a revoked or rotated key is known within the time an event
 * takes, and nothing is cached beyond that. A zone that is being removed, or whose Secret is not its own (owner UID),
 * has no keys.
 */
import type { KeyObject } from "node:crypto";
import {
  Client,
  Informer,
  secrets,
  type Controller,
  type ControllerContext,
  type Secret,
} from "@kontinuum/controller";
import { CodedError, messageOf, type Clock } from "@kontinuum/std";
import { systemNamespace, zoneAuthSecretName, zoneKind, type Zone } from "../kinds/index.ts";
import { acceptedCertificates, parseAuthSecret } from "./auth-secret.ts";
import { parseIdentityCertificate } from "./zone-identity.ts";
import { claimedZone, verifyZoneToken } from "./zone-token.ts";

/** A zone that proved itself. */
export interface ZoneCaller {
  /** Name of the Zone object. */
  readonly name: string;
  readonly uid: string;
  readonly region: string;
  readonly zone: string;
  /** Aborts when the key that signed is no longer accepted, or the zone is removed. */
  readonly revoked: AbortSignal;
}

interface ZoneKeys {
  readonly zone: Zone;
  readonly certificates: readonly string[];
}

interface Stream {
  readonly uid: string;
  readonly certificate: string;
  readonly abort: AbortController;
}

/** Streams of one zone that are kept to be cut; more are refused. */
const streamsPerZoneLimit = 2000;

/** See the module's comment. It runs as a controller beside the others. */
export class ZoneKeyring implements Controller {
  readonly name = "zone-keyring";
  readonly #clock: Clock;
  readonly #streams = new Map<string, Set<Stream>>();
  #zones: Informer<Zone> | undefined;
  #secrets: Informer<Secret> | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async run({ transport, edges, signal }: ControllerContext): Promise<void> {
    const client = new Client(transport, { edges, userAgent: "kontinuum-zone-keyring" });
    const zones = new Informer(client, zoneKind.resource, { edges, namespace: systemNamespace });
    const auths = new Informer(client, secrets, { edges, namespace: systemNamespace });
    zones.onChange(({ key }) => this.#recheck(key.slice(key.indexOf("/") + 1)));
    auths.onChange(({ key }) => this.#recheck(key.slice(key.indexOf("/") + 1).replace(/-etcd-auth$/, "")));
    const running = Promise.all([zones.run(signal), auths.run(signal)]);
    await Promise.race([Promise.all([zones.synced(), auths.synced()]), running]);
    this.#zones = zones;
    this.#secrets = auths;
    await running;
    for (const streams of this.#streams.values()) for (const stream of streams) stream.abort.abort();
  }

  /**
   * Who sent a token. Fails with `unauthenticated`, or `unavailable` until the keys are known. The caller
   * releases the returned handle when its call ends.
   */
  async authenticate(token: string): Promise<ZoneCaller & { release(): void }> {
    const name = claimedZone(token);
    const keys = this.#keysOf(name);
    if (!keys) throw new CodedError("unauthenticated", "the zone token is not valid: there is no such zone");
    const publicKeys: KeyObject[] = keys.certificates.map((pem) => parseIdentityCertificate(pem).publicKey);
    const { keyIndex } = await verifyZoneToken(token, publicKeys, this.#clock);
    const { metadata, spec } = keys.zone;
    const stream: Stream = {
      uid: metadata.uid ?? "",
      certificate: keys.certificates[keyIndex] ?? "",
      abort: new AbortController(),
    };
    const streams = this.#streams.get(name) ?? new Set();
    if (streams.size >= streamsPerZoneLimit) {
      throw new CodedError("rate_limited", `zone ${name} has ${streamsPerZoneLimit} calls open`, {
        retryAfterMs: 1000,
      });
    }
    streams.add(stream);
    this.#streams.set(name, streams);
    return {
      name,
      uid: stream.uid,
      region: spec.region,
      zone: spec.zone,
      revoked: stream.abort.signal,
      release: () => {
        streams.delete(stream);
        if (streams.size === 0) this.#streams.delete(name);
      },
    };
  }

  /** The keys a zone may sign with now. */
  #keysOf(name: string): ZoneKeys | undefined {
    if (!this.#zones || !this.#secrets)
      throw new CodedError("unavailable", "the keys of the zones are not read yet", { retryAfterMs: 1000 });
    const zone = this.#zones.peek({ namespace: systemNamespace, name });
    if (!zone || zone.metadata.deletionTimestamp !== undefined) return undefined;
    const secret = this.#secrets.peek({ namespace: systemNamespace, name: zoneAuthSecretName(name) });
    const isOwn = secret?.metadata.ownerReferences?.some((owner) => owner.uid === zone.metadata.uid) ?? false;
    if (!secret || !isOwn) return undefined;
    try {
      return { zone, certificates: acceptedCertificates(parseAuthSecret(secret), this.#clock.now()) };
    } catch (error) {
      throw new CodedError("unauthenticated", `the keys of zone ${name} can't be read: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }

  /** Cuts the streams of a zone whose key is no longer accepted; looks again when the overlap ends. */
  #recheck(name: string): void {
    const streams = this.#streams.get(name);
    if (!streams) return;
    let keys: ZoneKeys | undefined;
    try {
      keys = this.#keysOf(name);
    } catch {
      keys = undefined;
    }
    for (const stream of streams) {
      const accepted =
        keys?.zone.metadata.uid === stream.uid && keys.certificates.includes(stream.certificate);
      if (!accepted)
        stream.abort.abort(new CodedError("unauthenticated", `the key of zone ${name} was revoked`));
    }
    if (keys && keys.certificates.length > 1) this.#clock.timer(5 * 60_000, () => this.#recheck(name));
  }
}

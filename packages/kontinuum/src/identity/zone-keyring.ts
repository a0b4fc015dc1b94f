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
import { acceptedCertificates, overlapMs, parseAuthSecret } from "./auth-secret.ts";
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

/** See the module's comment. It runs as a controller beside the others. */
export class ZoneKeyring implements Controller {
  readonly name = "zone-keyring";
  readonly #clock: Clock;
  /** One controller for each key that proved itself: by zone, then by UID and certificate. Aborted when it is no longer accepted. */
  readonly #proven = new Map<string, Map<string, AbortController>>();
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
    for (const controllers of this.#proven.values())
      for (const controller of controllers.values()) controller.abort();
  }

  /** Who sent a token. Fails with `unauthenticated`, or `unavailable` until the keys are known. */
  async authenticate(token: string): Promise<ZoneCaller> {
    const name = claimedZone(token);
    const keys = this.#keysOf(name);
    if (!keys) throw new CodedError("unauthenticated", "the zone token is not valid: there is no such zone");
    const publicKeys: KeyObject[] = keys.certificates.map((pem) => parseIdentityCertificate(pem).publicKey);
    const { keyIndex } = await verifyZoneToken(token, publicKeys, this.#clock);
    const { metadata, spec } = keys.zone;
    const uid = metadata.uid ?? "";
    return {
      name,
      uid,
      region: spec.region,
      zone: spec.zone,
      revoked: this.#signalOf(name, `${uid} ${keys.certificates[keyIndex] ?? ""}`),
    };
  }

  #signalOf(zone: string, key: string): AbortSignal {
    const ofZone = this.#proven.get(zone) ?? new Map<string, AbortController>();
    this.#proven.set(zone, ofZone);
    const controller = ofZone.get(key) ?? new AbortController();
    ofZone.set(key, controller);
    return controller.signal;
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

  /** Cuts what a zone has open under keys that are no longer accepted; looks again when the overlap of a rotation ends. */
  #recheck(name: string): void {
    const proven = this.#proven.get(name);
    if (!proven) return;
    let keys: ZoneKeys | undefined;
    try {
      keys = this.#keysOf(name);
    } catch {
      keys = undefined;
    }
    const uid = keys?.zone.metadata.uid ?? "";
    const accepted = new Set(keys?.certificates.map((certificate) => `${uid} ${certificate}`));
    for (const [key, controller] of proven) {
      if (accepted.has(key)) continue;
      proven.delete(key);
      controller.abort(new CodedError("unauthenticated", `the key of zone ${name} was revoked`));
    }
    if (proven.size === 0) this.#proven.delete(name);
    else if (accepted.size > 1) this.#clock.timer(overlapMs, () => this.#recheck(name));
  }
}

/**
 * The hub's own certificate authority, and the certificate this process serves with.
 *
 * The authority lies in the store, sealed like Secrets, so that all replicas of a hub have the same one; whoever comes
 * first makes it. It is no object of the API: its key can't be read there. A process's own certificate and key exist in
 * memory only; they are made at start and again at half of their life, long before they expire.
 */
import { X509Certificate } from "node:crypto";
import type { Controller } from "@kontinuum/controller";
import { at, CodedError, isCoded, messageOf, stringAt, type Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage";
import { generateAuthority, issueCertificate, openSslPem } from "@kontinuum/talos";
import {
  authorityLifeMs,
  bundleOf,
  goodOf,
  isAuthorityDue,
  signerOf,
  type Authority,
} from "./authorities.ts";

/** Where the authorities lie: beside the API's objects, under a prefix that is sealed. */
export const authorityKey = "/kontinuum/hub-authorities";

/** Life of a process's certificate, and how far back it is valid, against clocks that run behind; milliseconds. */
const certificateLifeMs = 30 * 86_400_000;
const backdateMs = 3_600_000;
/** How often a process looks whether something is due, milliseconds. */
const lookMs = 6 * 3_600_000;
const retryMs = 60_000;
/** Tries to write against other replicas that do the same. */
const maxTries = 5;

/** A certificate with its key, PEM. */
export interface ServingPair {
  readonly cert: string;
  readonly key: string;
}

/** See the module's comment. */
export class HubAuthority {
  readonly #store: Store;
  readonly #edges: Edges;
  readonly #names: readonly string[];
  #known: readonly Authority[] = [];
  #pair: ServingPair | undefined;

  /** Reads or makes the authority and a certificate for `names` (addresses and host names). */
  static async open(store: Store, names: readonly string[], edges: Edges): Promise<HubAuthority> {
    const one = new HubAuthority(store, names, edges);
    await one.renew();
    return one;
  }

  private constructor(store: Store, names: readonly string[], edges: Edges) {
    this.#store = store;
    this.#names = names;
    this.#edges = edges;
  }

  /** PEM of all authorities that whoever connects to this hub must trust. */
  get bundle(): string {
    return bundleOf(this.#known);
  }

  /** What this process serves with. */
  get pair(): ServingPair {
    if (!this.#pair) throw new CodedError("internal", "the hub's certificate was not made");
    return this.#pair;
  }

  /** Does what is due. True when {@link pair} is a new one. */
  async renew(): Promise<boolean> {
    const now = this.#edges.clock.now();
    this.#known = await this.#ensureAuthorities(now);
    const signer = signerOf(this.#known, now);
    if (!signer) throw new CodedError("internal", "the hub has no authority");
    if (this.#pair && isFresh(this.#pair.cert, signer, now)) return false;
    const { crt, key } = await issueCertificate({
      ca: signer,
      edges: this.#edges,
      usage: "server",
      commonName: "kontinuum",
      organizations: [],
      names: this.#names,
      validityMs: certificateLifeMs,
      backdateMs,
    });
    this.#pair = { cert: crt, key: openSslPem(key) };
    return true;
  }

  /** Renews as long as the server runs; `use` is given each new pair. */
  renewal(use: (pair: ServingPair) => void): Controller {
    return {
      name: "hub-certificate",
      run: async ({ edges: { clock, log }, signal }) => {
        let waitMs = lookMs;
        while (!signal.aborted) {
          try {
            await clock.sleep(waitMs, signal);
            waitMs = lookMs;
            if (await this.renew()) use(this.pair);
          } catch (error) {
            if (signal.aborted || isCoded(error, "cancelled")) return;
            log.warn("the hub's certificate could not be renewed; tries again", { reason: messageOf(error) });
            waitMs = retryMs;
          }
        }
      },
    };
  }

  async #ensureAuthorities(now: number): Promise<readonly Authority[]> {
    for (let attempt = 0; attempt < maxTries; attempt++) {
      const [present] = (await this.#store.range({ key: authorityKey })).kvs;
      const good = goodOf(present ? parseAuthorities(present.value) : [], now);
      if (!isAuthorityDue(good, now)) return good;
      const made = await generateAuthority({
        organization: "kontinuum",
        algorithm: "p256",
        edges: this.#edges,
        validityMs: authorityLifeMs,
        backdateMs,
      });
      const wanted = [...good, made];
      const { succeeded } = await this.#store.txn({
        compare: [{ key: authorityKey, target: "mod", result: "equal", operand: present?.modRevision ?? 0 }],
        success: [{ type: "put", key: authorityKey, value: JSON.stringify({ authorities: wanted }) }],
      });
      if (!succeeded) continue;
      const { fingerprint256 } = new X509Certificate(made.crt);
      this.#edges.log.info("made the hub's own certificate authority", { sha256: fingerprint256 });
      return wanted;
    }
    throw new CodedError("unavailable", "the hub's authority is being written by others; start again");
  }
}

/** Whether a certificate of `signer` has more than half of its life left. */
function isFresh(pem: string, signer: Authority, now: number): boolean {
  const certificate = new X509Certificate(pem);
  const leftMs = Date.parse(certificate.validTo) - now;
  return leftMs > certificateLifeMs / 2 && certificate.verify(new X509Certificate(signer.crt).publicKey);
}

function parseAuthorities(value: Uint8Array): readonly Authority[] {
  const damaged = (): CodedError =>
    new CodedError(
      "data_loss",
      `the hub's authority in the store can't be read: restore the store from a backup, or delete the key ${authorityKey} to make a new authority, which zones must then be told of`,
    );
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(value).toString("utf8"));
  } catch {
    throw damaged();
  }
  const list = at(parsed, "authorities");
  if (!Array.isArray(list)) throw damaged();
  return list.map((entry): Authority => {
    const crt = stringAt(entry, "crt");
    const key = stringAt(entry, "key");
    if (crt === undefined || key === undefined) throw damaged();
    return { crt, key };
  });
}

/**
 * The doors of a node: its Talos API in either mode, and trustd on a control plane.
 *
 * A control plane makes its own certificates from the CA in its configuration. A worker has no CA key: it asks trustd
 * on a control plane, and its API does not listen until that has answered.
 */
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { messageOf, type Edges } from "@kontinuum/std";
import type { CertificateAndKey } from "../pki/certificates.ts";
import type { NodeFaults } from "./faults.ts";
import type { MachineSpec } from "./machine-spec.ts";
import { controlPlaneCertificate, foreignCertificate, maintenanceCertificate } from "./node-certificates.ts";
import type { NodeConfig } from "./node-config.ts";
import type { NodePorts } from "./node-host.ts";
import { NodeListener, type Peer } from "./node-listener.ts";
import { requestCertificate, type TrustdAnswer } from "./trustd-client.ts";
import { TrustdListener } from "./trustd-listener.ts";

/** Options of a {@link NodeAccess}. */
export interface NodeAccessOptions {
  readonly spec: MachineSpec;
  readonly ports: NodePorts;
  readonly edges: Edges;
  readonly trustdRetryMs: number;
  readonly hostname: () => string;
  readonly faults: () => NodeFaults;
  readonly onRequest: (request: Http2ServerRequest, response: Http2ServerResponse, peer: Peer) => void;
  readonly onTrustd: (request: Http2ServerRequest, response: Http2ServerResponse) => void;
}

/** Time for the last answers of a node that goes down, milliseconds. */
const answerMs = 500;

/** See the module's comment. */
export class NodeAccess {
  readonly #options: NodeAccessOptions;
  readonly #listener: NodeListener;
  readonly #trustd: TrustdListener;
  #workerCertificate: TrustdAnswer | undefined;

  constructor(options: NodeAccessOptions) {
    this.#options = options;
    const { spec, ports, edges, faults, onRequest } = options;
    this.#listener = new NodeListener({ address: spec.address, port: ports.api, edges, faults, onRequest });
    this.#trustd = new TrustdListener({
      address: spec.address,
      port: ports.trustd,
      onRequest: options.onTrustd,
    });
  }

  /** The port of the Talos API; 0 while nobody listens. */
  get port(): number {
    return this.#listener.port;
  }

  /** Maintenance mode: everybody who reaches the port may look, with a key of this boot. */
  openMaintenance(): Promise<void> {
    const { spec, edges, hostname } = this.#options;
    const make = once(() => maintenanceCertificate(spec, hostname(), edges));
    return this.#listener.open({ kind: "maintenance", certificate: make });
  }

  /** Lets clients of the cluster in: at once on a control plane, after trustd's answer on a worker. */
  async open(config: NodeConfig, signal: AbortSignal): Promise<void> {
    if (config.role === "worker") {
      this.#listener.pause();
      this.#workerCertificate = await this.#askTrustd(config, signal);
    }
    await this.reopen(config);
  }

  /** The same clients, by a changed configuration. */
  async reopen(config: NodeConfig): Promise<void> {
    const { spec, edges, hostname, faults } = this.#options;
    const answer = config.role === "worker" ? this.#workerCertificate : undefined;
    if (config.role === "worker" && !answer) return;
    const make = once(async () => {
      if (faults().wrongCertificate === true) return foreignCertificate(spec, hostname(), edges);
      return answer ?? controlPlaneCertificate(spec, hostname(), config, edges);
    });
    const clientCas = answer ? [answer.ca] : [config.osCa.crt, ...config.facts.acceptedOsCas];
    await this.#listener.open({ kind: "normal", certificate: make, clientCas });
  }

  /** trustd answers workers from now on. */
  openTrustd(config: NodeConfig): Promise<void> {
    const { spec, edges, hostname } = this.#options;
    return this.#trustd.open(() => controlPlaneCertificate(spec, hostname(), config, edges));
  }

  /** Refuses connections; calls under way may finish. */
  pause(): void {
    this.#listener.pause();
  }

  /** Closes all doors in an orderly way: an answer that is on its way still arrives. */
  close(): Promise<void> {
    this.#listener.pause(answerMs);
    return this.#closeTrustd();
  }

  /** Loses power: nothing arrives any more. */
  cut(): Promise<void> {
    this.#listener.cut();
    return this.#closeTrustd();
  }

  #closeTrustd(): Promise<void> {
    this.#workerCertificate = undefined;
    return this.#trustd.close();
  }

  async #askTrustd(config: NodeConfig, signal: AbortSignal): Promise<TrustdAnswer> {
    const { spec, ports, edges, hostname, trustdRetryMs } = this.#options;
    for (;;) {
      try {
        return await requestCertificate({
          config,
          hostname: hostname(),
          spec,
          port: ports.trustd,
          edges,
          signal,
        });
      } catch (error) {
        if (signal.aborted) throw error;
        edges.log.debug("trustd does not answer yet", { reason: messageOf(error) });
        await edges.clock.sleep(trustdRetryMs, signal);
      }
    }
  }
}

/** Makes it on the first call, and the same for all later ones. */
function once(make: () => Promise<CertificateAndKey>): () => Promise<CertificateAndKey> {
  let made: Promise<CertificateAndKey> | undefined;
  return () => (made ??= make());
}

/**
 * The doctor: is this installation fit for use, and if not, what has to be done?
 *
 * A finding fails only when machines cannot be made or kept because of it. Results are kept for a few
 * seconds, so that pages and probes may ask as often as they like.
 */
import { messageOf, type Edges } from "@kontinuum/std";
import type { Catalog } from "../catalog/catalog.ts";
import type { Config } from "../config/config.ts";
import type { Finding, Provider, ProviderCall } from "../provider-contract/contract.ts";
import { limited } from "../provider-contract/limited.ts";
import { findOnPath } from "./path-search.ts";

/** How long a diagnosis is reused, milliseconds. */
export const freshMs = 3_000;
const healthLimitMs = 5_000;
const providerLimitMs = 15_000;

/** All findings and the verdict. */
export interface Diagnosis {
  readonly provider: string;
  readonly healthy: boolean;
  readonly findings: readonly Finding[];
}

/** What the doctor looks at. */
export interface DoctorOptions {
  readonly edges: Edges;
  readonly config: Config;
  readonly authMode: string;
  readonly provider: Provider;
  readonly catalog: Catalog;
  projects(): readonly string[];
}

/** See the module comment. */
export class Doctor {
  readonly #options: DoctorOptions;
  #last: { at: number; diagnosis: Promise<Diagnosis> } | undefined;

  constructor(options: DoctorOptions) {
    this.#options = options;
  }

  /** The present diagnosis. Never rejects: what cannot be found out is a finding. */
  diagnose(): Promise<Diagnosis> {
    const now = this.#options.edges.clock.monotonic();
    if (this.#last && now - this.#last.at < freshMs) return this.#last.diagnosis;
    const diagnosis = this.#diagnose();
    this.#last = { at: now, diagnosis };
    return diagnosis;
  }

  /** Whether the provider answers; throws what it says when it does not. */
  async health(limitMs = healthLimitMs): Promise<void> {
    await this.#within(limitMs, (call) => this.#options.provider.health(call));
  }

  async #diagnose(): Promise<Diagnosis> {
    const { provider } = this.#options;
    const findings = [
      this.#auth(),
      this.#projects(),
      this.#catalog(),
      await this.#health(),
      await this.#guestkit(),
      ...(await this.#provider()),
    ];
    const healthy = findings.every((finding) => finding.status !== "fail");
    return { provider: provider.name, healthy, findings };
  }

  #auth(): Finding {
    const { authMode, provider } = this.#options;
    if (authMode !== "disabled") {
      return { check: "auth", status: "pass", message: `Callers are recognised by ${authMode}.` };
    }
    return provider.name === "demo"
      ? {
          check: "auth",
          status: "pass",
          message: "Authentication is off, which is fine for the demo provider.",
        }
      : {
          check: "auth",
          status: "warn",
          message: "Authentication is off: whoever reaches the port controls every machine.",
          hint: "Set KRYTON_AUTH_MODE=apikey and KRYTON_API_KEYS_FILE.",
        };
  }

  #projects(): Finding {
    const projects = this.#options.projects();
    return projects.length > 0
      ? {
          check: "projects",
          status: "pass",
          // A number: callers need not know the names of projects that are not theirs.
          message: `${projects.length} configured.`,
        }
      : {
          check: "projects",
          status: "fail",
          message: "No project is configured.",
          hint: "Set KRYTON_PROJECTS.",
        };
  }

  #catalog(): Finding {
    const { images } = this.#options.catalog;
    return images.length > 0
      ? { check: "catalog", status: "pass", message: `${images.length} images.` }
      : {
          check: "catalog",
          status: "fail",
          message: "The image catalog is empty.",
          hint: "Check KRYTON_IMAGES_FILE.",
        };
  }

  async #health(): Promise<Finding> {
    const check = "provider-health";
    try {
      await this.health();
      return { check, status: "pass", message: "The provider answers." };
    } catch (error) {
      return { check, status: "fail", message: messageOf(error), hint: "Look at what the provider runs on." };
    }
  }

  async #guestkit(): Promise<Finding> {
    const binary = this.#options.config.env["GUESTKIT_BIN"] || "guestkit";
    const found = await findOnPath(binary, this.#options.config.env);
    return found
      ? { check: "guestkit", status: "pass", message: "guestkit is installed." }
      : {
          check: "guestkit",
          status: "warn",
          message: "guestkit is not installed: golden images are published without a boot-readiness verdict.",
          hint: "Install guestkit or set GUESTKIT_BIN.",
        };
  }

  async #provider(): Promise<readonly Finding[]> {
    try {
      return await this.#within(providerLimitMs, (call) => this.#options.provider.doctor(call));
    } catch (error) {
      return [{ check: "provider", status: "fail", message: messageOf(error) }];
    }
  }

  #within<T>(limitMs: number, work: (call: ProviderCall) => Promise<T>): Promise<T> {
    return limited(this.#options.edges.clock, limitMs, (signal) => work({ signal, progress: () => {} }));
  }
}

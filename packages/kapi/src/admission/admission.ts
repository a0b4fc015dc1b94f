/**
 * Admission: what may change or refuse a write between authorization and storage.
 *
 * Mutators run one after another and may change the object; validators see the final object and may only refuse, by
 * throwing a `StatusError`. Never asked for reads.
 */
import type { JsonObject } from "@kontinuum/std";
import type { UserInfo } from "../contract.ts";
import type { ResourceDefinition } from "../resource.ts";

/** The write under decision. */
export interface AdmissionRequest {
  readonly operation: "CREATE" | "UPDATE" | "DELETE";
  readonly resource: ResourceDefinition;
  readonly subresource: string;
  readonly namespace: string;
  /** Empty while `generateName` has not been resolved. */
  readonly name: string;
  /** The object as it would be stored; absent on delete. Mutators change it in place. */
  object: JsonObject | undefined;
  readonly oldObject: JsonObject | undefined;
  readonly user: UserInfo;
  readonly dryRun: boolean;
  /**
   * The server itself cleans up (a namespace, a definition, an owner's dependents): a webhook that can't be reached does
   * not hold it up, whatever its failure policy.
   */
  readonly housekeeping: boolean;
  /** The options object of the request (`CreateOptions`, …). */
  readonly options: JsonObject;
  /** Adds a `Warning` header. */
  warn(text: string): void;
  /** Adds an audit annotation. */
  annotate(key: string, value: string): void;
}

/** One admission plug-in. */
export interface AdmissionPlugin {
  readonly name: string;
  mutate?(request: AdmissionRequest): void | Promise<void>;
  validate?(request: AdmissionRequest): void | Promise<void>;
}

/** A chain of plug-ins, asked in order. */
export class AdmissionChain {
  readonly #plugins: readonly AdmissionPlugin[];

  constructor(plugins: readonly AdmissionPlugin[]) {
    this.#plugins = plugins;
  }

  async mutate(request: AdmissionRequest): Promise<void> {
    for (const plugin of this.#plugins) await plugin.mutate?.(request);
  }

  async validate(request: AdmissionRequest): Promise<void> {
    for (const plugin of this.#plugins) await plugin.validate?.(request);
  }
}

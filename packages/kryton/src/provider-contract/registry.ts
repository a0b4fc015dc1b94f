/**
 * Providers by name: the one place that knows which exist.
 */
import { CodedError, type Edges } from "@kontinuum/std";
import type { Store } from "@kontinuum/storage/client";
import type { Catalog } from "../catalog/catalog.ts";
import type { Config } from "../config/config.ts";
import { DemoProvider } from "../providers/demo/demo-provider.ts";
import type { DemoHook } from "../providers/demo/hook.ts";
import type { Provider } from "./contract.ts";

/** What providers are made from; each takes what it needs. */
export interface ProviderOptions {
  readonly store: Store;
  readonly edges: Edges;
  readonly config: Config;
  readonly catalog: Catalog;
  /** See `providers/demo/hook.ts`. */
  readonly onMachine?: DemoHook | undefined;
}

/** Makes the configured provider. Fails with `invalid_argument` when its settings are bad. */
export async function createProvider(options: ProviderOptions): Promise<Provider> {
  const { config, store, edges, onMachine } = options;
  switch (config.provider) {
    case "demo":
      return new DemoProvider({ store, edges, ...(onMachine ? { onMachine } : {}) });
    default:
      throw new CodedError(
        "invalid_argument",
        `KRYTON_PROVIDER: ${config.provider} is not in this build yet`,
      );
  }
}

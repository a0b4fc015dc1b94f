/**
 * helm, looked for when the first chart is due: a hub without clusters needs none.
 */
import type { Config } from "../config/config.ts";
import { openHelm, type Helm } from "../domain/addon/helm.ts";

/** Opens helm once, and closes it if it was opened. */
export class LazyHelm {
  readonly #config: Config;
  #helm: Promise<Helm> | undefined;

  constructor(config: Config) {
    this.#config = config;
  }

  /** The helm program. Fails with `failed_precondition` when there is none; the next call looks again. */
  get(): Promise<Helm> {
    this.#helm ??= openHelm(this.#config.values.KONTINUUM_HELM, process.env["PATH"] ?? "").catch(
      (error: unknown) => {
        // Somebody may install it meanwhile.
        this.#helm = undefined;
        throw error;
      },
    );
    return this.#helm;
  }

  async close(): Promise<void> {
    const helm = await this.#helm?.catch(() => undefined);
    await helm?.close();
  }
}

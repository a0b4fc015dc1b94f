/**
 * Version contracts: the shape of configuration a Talos release takes, chosen by its major and minor
 * number only; and which Kubernetes releases it runs.
 */
import { CodedError } from "@kontinuum/std";

/** A Talos release line. */
export interface VersionContract {
  readonly major: 1;
  readonly minor: number;
}

/** The oldest and newest release lines configurations are made for. */
export const supportedContracts = { oldest: 11, newest: 14 } as const;

/** Kubernetes minors each Talos minor supports: `[oldest, newest]` (Talos support matrix). */
const kubernetesRanges: ReadonlyMap<number, readonly [number, number]> = new Map([
  [11, [29, 34]],
  [12, [30, 35]],
  [13, [31, 36]],
  [14, [32, 37]],
]);

/** The contract of `v1.13`, `1.13` or `v1.13.0-rc.1`. Fails with `invalid_argument`. */
export function parseVersionContract(version: string): VersionContract {
  const match = /^v?1\.(\d{1,3})(?:\.\d{1,3}(?:[-+][0-9A-Za-z.+-]{1,64})?)?$/.exec(version);
  if (!match) {
    throw new CodedError(
      "invalid_argument",
      `${JSON.stringify(version.slice(0, 64))} is not a Talos version such as v1.13.0`,
    );
  }
  return { major: 1, minor: Number(match[1]) };
}

/** Like {@link parseVersionContract}, for releases that configurations can be made for. */
export function supportedContract(version: string): VersionContract {
  const contract = parseVersionContract(version);
  const { oldest, newest } = supportedContracts;
  if (contract.minor < oldest || contract.minor > newest) {
    throw new CodedError(
      "unsupported",
      `Talos ${version} is outside v1.${oldest} to v1.${newest}: choose a release in between`,
    );
  }
  return contract;
}

/** The Kubernetes minors a Talos release line runs, or `undefined` for a line we know nothing of. */
export function kubernetesRange({ minor }: VersionContract): readonly [number, number] | undefined {
  return kubernetesRanges.get(minor);
}

/** A Kubernetes version without its `v`. Fails with `invalid_argument` unless it is `1.x.y`. */
export function kubernetesVersion(version: string): string {
  const match = /^v?(1\.\d{1,3}\.\d{1,3}(?:-[0-9A-Za-z.-]{1,64})?)$/.exec(version);
  if (!match?.[1]) {
    throw new CodedError(
      "invalid_argument",
      `${JSON.stringify(version.slice(0, 64))} is not a Kubernetes version such as 1.32.0`,
    );
  }
  return match[1];
}

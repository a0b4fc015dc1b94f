/**
 * Describing resources: a typed record as protobuf, and the same as YAML for people.
 */
import { create, toBinary, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { stringify } from "yaml";
import type { ResourceKind } from "../client/resource-kind.ts";
import type { ResourceDescription } from "./resource-store.ts";

/** A resource of a kind; `display` is what its YAML shows. */
export function describe<D extends DescMessage>(
  kind: ResourceKind<D>,
  id: string,
  owner: string,
  spec: MessageInitShape<D>,
  display: unknown,
): ResourceDescription {
  let yaml: string | undefined;
  return {
    namespace: kind.namespace,
    type: kind.type,
    id,
    owner,
    proto: toBinary(kind.schema, create(kind.schema, spec)),
    yaml: () => (yaml ??= stringify(display, { lineWidth: 0 })),
  };
}

/** Raw bytes of `aa:bb:cc:dd:ee:ff`. */
export function hardwareAddressBytes(text: string): Uint8Array {
  return Uint8Array.from(text.split(":").map((part) => Number.parseInt(part, 16)));
}

/** `256 GB`, as Talos prints sizes (powers of a thousand, two significant digits). */
export function prettySize(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit] ?? ""}`;
}

/**
 * The shape of configuration values, and finding what does not fit one.
 *
 * A node reads its configuration strictly: a key it does not know is fatal at any level. Shapes are
 * as lenient as Go's YAML where that is lenient: any scalar is a text, `yes` and `on` are true where
 * a truth value is wanted, and null stands for "not given" everywhere.
 */
import { isObject } from "@kontinuum/std";
import { isAddress, isNetwork } from "./ip-text.ts";

/** What a value may be. */
export type Shape =
  | { readonly is: "text" | "bool" | "int" | "uint" | "mapping" | "args" }
  | {
      readonly is: "matching";
      readonly what: string;
      /** Whether an empty text stands for "not given". */
      readonly orEmpty: boolean;
      test(text: string): boolean;
    }
  | { readonly is: "either"; readonly what: string; test(value: unknown): boolean }
  | { readonly is: "list"; readonly of: Shape }
  | { readonly is: "map"; readonly of: Shape }
  | { readonly is: "object"; readonly fields: Readonly<Record<string, Shape>> }
  | { readonly is: "since"; readonly minor: number; readonly of: Shape };

/** Any scalar, read as text. */
export const text: Shape = { is: "text" };
export const bool: Shape = { is: "bool" };
export const int: Shape = { is: "int" };
/** A whole number from 0. */
export const uint: Shape = { is: "uint" };
/** A whole number from 0 that fits 32 bits. */
export const uint32: Shape = {
  is: "either",
  what: "a whole number from 0 to 4294967295",
  test: (value) => Number.isInteger(value) && Number(value) >= 0 && Number(value) < 2 ** 32,
};
/** A mapping whose content is Kubernetes' or another's business. */
export const mapping: Shape = { is: "mapping" };
/** Command line arguments: a text or a list of texts each. */
export const args: Shape = { is: "args" };

export const list = (of: Shape): Shape => ({ is: "list", of });
export const map = (of: Shape): Shape => ({ is: "map", of });
export const object = (fields: Readonly<Record<string, Shape>>): Shape => ({ is: "object", fields });
/** A field that exists only from Talos 1.`minor` on. */
export const since = (minor: number, of: Shape): Shape => ({ is: "since", minor, of });
/** One of a few words. */
export const words = (...allowed: readonly string[]): Shape => ({
  is: "matching",
  what: `one of ${allowed.join(", ")}`,
  orEmpty: false,
  test: (value) => allowed.includes(value),
});

const matching = (what: string, test: (text: string) => boolean, orEmpty = true): Shape => ({
  is: "matching",
  what,
  orEmpty,
  test,
});

export const cidr = matching("an address with prefix length", isNetwork);

export const ip = matching("an IP address", isAddress);

/** `<address>:<port>`, IPv6 in brackets. */
export const addressPort = matching("an address with port", (value) => {
  const [, six, four, port] = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)):(\d{1,5})$/.exec(value) ?? [];
  return isAddress(six ?? four ?? "") && Number(port) <= 65_535;
});

/** A number of bytes: `10GiB`, `2.5TB`; a negative one counts from the end. */
export const byteSize = matching("a size such as 10GiB", (value) =>
  /^[-+]?\s*\d+(?:\.\d+)?\s*(?:[kmgtpe]i?b?|b)?$/i.test(value),
);

/** A disk size with an optional comparison: `4GB`, `>= 1TB`. */
export const sizeCondition = matching("a size with an optional comparison", (value) =>
  /^\s*(?:>=|<=|>|<|==)?\s*\d+(?:\.\d+)?\s*(?:[kmgtpe]i?b?|b)?\s*$/i.test(value),
);

/** Go's durations: `1h30m`, `100ms`. */
export const duration = matching(
  "a duration such as 1m0s",
  (value) =>
    value.length <= 64 && /^[-+]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+)$/.test(value),
  false,
);

/** A routing table by name or number. */
export const routingTable = matching(
  "a routing table",
  (value) =>
    /^(?:unspec|default|main|local)$/.test(value) || (/^\d{1,10}$/.test(value) && Number(value) < 2 ** 32),
);

export const mac = matching("a hardware address", (value) =>
  /^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5,19}$/.test(value),
);

/** A URL with one of these schemes. */
export const url = (...schemes: readonly string[]): Shape =>
  matching(`a ${schemes.join(" or ")} URL`, (value) => {
    try {
      return schemes.includes(new URL(value).protocol.slice(0, -1));
    } catch {
      return false;
    }
  });

/** A port or a range of ports: `80`, `1000-2000`. */
export const portRange: Shape = {
  is: "either",
  what: "a port or a range such as 1000-2000",
  test: (value) =>
    typeof value === "number"
      ? Number.isInteger(value) && value >= 0 && value <= 65_535
      : typeof value === "string" &&
        /^\+?\d{1,5}-\+?\d{1,5}$/.test(value) &&
        value.split("-").every((port) => Number(port) <= 65_535),
};

/** Bytes in hexadecimal, also with colons between them. */
export const hex = matching("bytes in hexadecimal", (value) => {
  const digits = value.replaceAll(":", "");
  return digits.length % 2 === 0 && /^[0-9a-fA-F]*$/.test(digits);
});

/** Base64 in the standard alphabet, padded; line ends are skipped. */
export const base64 = matching("base64", (value) => {
  const digits = value.replaceAll(/[\r\n]/g, "");
  return digits.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(digits);
});

/** What does not fit. Values are never shown: they may be secrets. */
export interface Misfit {
  /** Keys and list positions from the document's root, joined by dots. */
  readonly path: string;
  /** `unknown key`, or what was expected. */
  readonly problem: string;
}

/** Most misfits that are told of one document. */
const misfitsMax = 100;

/** All misfits of a value, for a node of Talos 1.`minor`. */
export function misfits(value: unknown, shape: Shape, minor: number): Misfit[] {
  const found: Misfit[] = [];
  visit(value, shape, minor, "", found);
  return found;
}

function visit(value: unknown, shape: Shape, minor: number, path: string, found: Misfit[]): void {
  if (value === null || value === undefined || found.length >= misfitsMax) return;
  const expect = (what: string): void => void found.push({ path, problem: `expected ${what}` });
  switch (shape.is) {
    case "text":
      if (!isScalar(value)) expect("a text");
      return;
    case "bool":
      if (typeof value !== "boolean" && !goBool(value)) expect("true or false");
      return;
    case "int":
      if (!Number.isInteger(value)) expect("a whole number");
      return;
    case "uint":
      if (!Number.isInteger(value) || Number(value) < 0) expect("a whole number from 0");
      return;
    case "mapping":
      if (!isObject(value)) expect("a mapping");
      return;
    case "matching":
      if (!isScalar(value)) expect(shape.what);
      else if (!(value === "" && shape.orEmpty) && !shape.test(String(value))) expect(shape.what);
      return;
    case "either":
      if (!shape.test(value)) expect(shape.what);
      return;
    case "args":
      if (!isObject(value)) return expect("a mapping");
      for (const [key, entry] of Object.entries(value)) {
        visit(entry, Array.isArray(entry) ? list(text) : text, minor, join(path, key), found);
      }
      return;
    case "list":
      if (!Array.isArray(value)) return expect("a list");
      value.forEach((item, index) => visit(item, shape.of, minor, join(path, String(index)), found));
      return;
    case "map":
      if (!isObject(value)) return expect("a mapping");
      for (const [key, entry] of Object.entries(value)) visit(entry, shape.of, minor, join(path, key), found);
      return;
    case "since":
      return visit(value, shape.of, minor, path, found);
    case "object":
      if (!isObject(value)) return expect("a mapping");
      for (const [key, entry] of Object.entries(value)) {
        const field = Object.hasOwn(shape.fields, key) ? shape.fields[key] : undefined;
        if (!field || (field.is === "since" && field.minor > minor)) {
          found.push({ path: join(path, key.slice(0, 128)), problem: "unknown key" });
        } else {
          visit(entry, field, minor, join(path, key), found);
        }
      }
      return;
  }
}

function join(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}

function isScalar(value: unknown): boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

function goBool(value: unknown): boolean {
  // Without true and false: as texts those were quoted, and Go does not take quoted ones.
  return typeof value === "string" && /^(y|n|yes|no|on|off)$/i.test(value);
}

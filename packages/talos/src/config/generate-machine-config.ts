/**
 * The machine configuration of one node: generated for its version contract, then patched.
 *
 * The result equals what the official tool generates from the same secrets, field by field, except
 * where that would be refused by a node. It is not validated here: some of what a node demands (a
 * disk to install on) depends on where it runs; see `validateMachineConfig`.
 */
import { CodedError, isDnsSubdomain } from "@kontinuum/std";
import { serializeConfigDocuments, type ConfigDocument } from "./config-document.ts";
import { documents14 } from "./contract-14.ts";
import { documentsPre14 } from "./contract-pre14.ts";
import { parseEndpoint, type MachineConfigOptions } from "./machine-config-options.ts";
import { patchConfigDocuments } from "./patch.ts";
import { supportedContract } from "./version-contract.ts";

/** The configuration as text. Fails with `invalid_argument` or `unsupported` naming the option. */
export function generateMachineConfig(options: MachineConfigOptions): string {
  return serializeConfigDocuments(generateConfigDocuments(options));
}

/** The configuration as documents, patched. */
export function generateConfigDocuments(options: MachineConfigOptions): ConfigDocument[] {
  parseEndpoint(options.endpoint);
  if (options.hostname !== undefined && !isDnsSubdomain(options.hostname)) {
    throw new CodedError(
      "invalid_argument",
      `${JSON.stringify(options.hostname.slice(0, 260))} is not a host name: lower-case letters, digits, "-" and "."`,
    );
  }
  const contract = supportedContract(options.talosVersion);
  const documents = contract.minor >= 14 ? documents14(options) : documentsPre14(options, contract);
  return patchConfigDocuments(documents, options.patches ?? []);
}

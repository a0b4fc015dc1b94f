/**
 * Looks at a machine that waits for its configuration.
 *
 *     node packages/talos/examples/probe.ts 192.0.2.10
 */
import { systemEdges } from "@kontinuum/std";
import { isTalosError, probe } from "@kontinuum/talos";

const [address] = process.argv.slice(2);
if (address === undefined) {
  console.error("usage: probe.ts <address>");
  process.exit(2);
}

try {
  const seen = await probe(address, { edges: systemEdges() });
  console.log(`Talos ${seen.version || "of unknown release"}, SMBIOS UUID ${seen.uuid ?? "none"}`);
  console.log(`certificate key ${seen.fingerprint}`);
  for (const { name, mac, addresses } of seen.interfaces) console.log(name, mac, addresses.join(" "));
  for (const { devicePath, sizeBytes, model } of seen.disks) console.log(devicePath, sizeBytes, model);
} catch (error) {
  if (!isTalosError(error)) throw error;
  console.error(`${error.message} (${error.class})`);
  process.exitCode = 1;
}

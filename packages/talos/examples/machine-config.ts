/**
 * Writes secrets, machine configurations and client files of a new cluster into a folder, ready for
 * `talosctl apply-config` or for `connectTalos`.
 *
 *     node packages/talos/examples/machine-config.ts /tmp/demo 192.0.2.10
 */
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { systemEdges } from "@kontinuum/std";
import {
  endpointOf,
  generateAdminKubeconfig,
  generateMachineConfig,
  generateSecretsBundle,
  generateTalosconfig,
  serializeSecretsBundle,
  validateMachineConfig,
} from "@kontinuum/talos";

const [folder, address] = process.argv.slice(2);
if (folder === undefined || address === undefined) {
  console.error("usage: machine-config.ts <folder> <control-plane address>");
  process.exit(2);
}

const edges = systemEdges();
const talosVersion = "v1.13.0";
const clusterName = "demo";
const endpoint = endpointOf(address);
const bundle = await generateSecretsBundle({ talosVersion, edges });

const files: Record<string, string> = {
  "secrets.yaml": serializeSecretsBundle(bundle, "yaml"),
  talosconfig: await generateTalosconfig({ bundle, clusterName, endpoints: [address], edges }),
  kubeconfig: await generateAdminKubeconfig({ bundle, endpoint, clusterName, edges }),
};
for (const type of ["controlplane", "worker"] as const) {
  const text = generateMachineConfig({
    type,
    clusterName,
    endpoint,
    bundle,
    talosVersion,
    kubernetesVersion: "1.34.0",
    install: { diskSelector: { type: "nvme" } },
    // Beside Cilium: no network plugin of Talos' own and no kube-proxy.
    network: { cni: "none", kubeProxy: false },
  });
  const { valid, errors, decodeErrors } = validateMachineConfig(text, "metal", { talosVersion });
  if (!valid) throw new Error([...decodeErrors, ...errors].join("; "));
  files[`${type}.yaml`] = text;
}

await mkdir(folder, { recursive: true, mode: 0o700 });
for (const [name, text] of Object.entries(files)) {
  await writeFile(path.join(folder, name), text, { mode: 0o600 });
  console.log(path.join(folder, name));
}

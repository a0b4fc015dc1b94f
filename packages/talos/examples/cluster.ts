/**
 * A cluster from an empty machine, as a control plane does it: discover, configure, bootstrap, wait.
 * The machine is simulated in this process and speaks the real API, so the example needs nothing.
 *
 *     node packages/talos/examples/cluster.ts
 */
import { systemEdges } from "@kontinuum/std";
import {
  adminCredentials,
  connectTalos,
  dialAddressOf,
  endpointOf,
  generateMachineConfig,
  generateSecretsBundle,
  isTalosError,
  parseNodeKubeconfig,
  probe,
  SimulatedRack,
  type TalosClient,
} from "@kontinuum/talos";

const edges = systemEdges();
const talosVersion = "v1.13.0";
const rackAddress = "127.78.0.10";
const rack = await SimulatedRack.create({ machines: 1, addressBase: rackAddress, edges });

try {
  // 1. Who is there? Keep the key and the UUID: an address identifies nothing.
  const seen = await probe(rackAddress, { edges });
  console.log(`found Talos ${seen.version} on ${seen.uuid ?? "a machine without UUID"}`);
  // On real hardware, an address of the machine's own; the simulator's is loopback, which this skips.
  const address = dialAddressOf(seen.interfaces) ?? rackAddress;

  // 2. Secrets once, configuration from them, sent only to the machine that was seen.
  const endpoint = endpointOf(address);
  const bundle = await generateSecretsBundle({ talosVersion, edges });
  const config = generateMachineConfig({
    type: "controlplane",
    clusterName: "demo",
    hostname: "first",
    endpoint,
    bundle,
    talosVersion,
    kubernetesVersion: "1.34.0",
    install: { diskSelector: {} },
    network: { cni: "none", kubeProxy: false },
    allowSchedulingOnControlPlanes: true,
  });
  {
    using machine = connectTalos({
      address,
      credentials: { kind: "maintenance", fingerprint: seen.fingerprint },
      edges,
    });
    const { details } = await machine.applyConfiguration({
      config,
      ...(seen.uuid === undefined ? {} : { expectUuid: seen.uuid }),
    });
    console.log(details);
  }

  // 3. From now on with the cluster's own keys.
  const credentials = await adminCredentials({ bundle, edges });
  using node = connectTalos({ address, credentials, edges });
  console.log(`bootstrap: ${await patiently(node, (client) => client.bootstrap())}`);
  await patiently(node, (client) =>
    client.healthCheck({ controlPlane: [address], onProgress: (line) => console.log(`  ${line}`) }),
  );
  const { server } = parseNodeKubeconfig(await node.kubeconfig(), { endpoint });
  console.log(`Kubernetes answers at ${server}`);
} finally {
  await rack.close();
}

/** Repeats what time alone will cure; gives up after two minutes. */
async function patiently<T>(client: TalosClient, call: (client: TalosClient) => Promise<T>): Promise<T> {
  const until = edges.clock.monotonic() + 120_000;
  for (;;) {
    try {
      return await call(client);
    } catch (error) {
      const curable = isTalosError(error) && (error.class === "retry" || error.class === "wait");
      if (!curable || edges.clock.monotonic() > until) throw error;
      await edges.clock.sleep(500);
    }
  }
}

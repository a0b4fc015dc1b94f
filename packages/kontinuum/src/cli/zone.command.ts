/**
 * `kontinuum zone`: add, list and remove zones.
 */
import { Command, Option, type CommandUnknownOpts } from "@commander-js/extra-typings";
import type { Zone } from "../kinds/index.ts";
import { systemNamespace } from "../kinds/well-known.ts";
import { parseDuration } from "./duration.ts";
import { withClient } from "./operator-client.ts";
import { outputOption, printList } from "./output.ts";
import type { Terminal } from "./terminal.ts";

const pollMs = 2000;

/** The command group `zone`. */
export function zoneCommand(terminal: Terminal): CommandUnknownOpts {
  const group = new Command("zone").description(
    "Zones: clusters that run their own server and join this hub.",
  );
  for (const command of [addCommand(terminal), listCommand(terminal), removeCommand(terminal)]) {
    group.addCommand(command);
  }
  return group;
}

const kubeconfigHelp = "kubeconfig (default: $KUBECONFIG, else ~/.kube/config)";
const contextHelp = "context (default: the current one)";

function addCommand(terminal: Terminal) {
  return new Command("add")
    .description("Add a zone: its cluster, its pool and its first machine.")
    .requiredOption("--region <name>", "region")
    .requiredOption("--zone <name>", "zone within the region")
    .requiredOption("--talos-address <address>", "address or host name of the first machine")
    .option("--domain <name>", "public domain (default: the hub's)")
    .option("--talos-version <version>", "Talos version")
    .option("--kubernetes-version <version>", "Kubernetes version")
    .option("--instance <name>", "use this registered machine")
    .option("--kubeconfig <file>", kubeconfigHelp)
    .option("--context <name>", contextHelp)
    .option("--wait", "wait until the zone is installed")
    .addOption(
      new Option("--for <condition>", "what --wait waits for")
        .choices(["Installed", "Ready"] as const)
        .default("Installed" as const),
    )
    .option("--timeout <duration>", "longest wait", "15m")
    .option("--unregister-instances-on-delete", "delete the machines' objects with the cluster")
    .addHelpText(
      "after",
      `
Adding what exists changes nothing.

Examples:
  kontinuum zone add --region eu --zone hel01 --talos-address 10.0.0.5
  kontinuum zone add --region eu --zone hel01 --talos-address node1.example.com --domain example.com --wait --for Ready`,
    )
    .action(async (options) => {
      const timeoutMs = parseDuration(options.timeout);
      const { addZone } = await import("../domain/zone/zone.add.ts");
      const { waitForZone } = await import("../domain/zone/zone.wait.ts");
      await withClient(terminal, options, async (client) => {
        const zone = await addZone(client, terminal.edges.network, {
          region: options.region,
          zone: options.zone,
          talosAddress: options.talosAddress,
          domain: options.domain,
          talosVersion: options.talosVersion,
          kubernetesVersion: options.kubernetesVersion,
          existingInstance: options.instance,
          unregisterInstances: options.unregisterInstancesOnDelete,
        });
        const { name } = zone.metadata;
        terminal.stdout.write(
          `zone ${JSON.stringify(name)} created (region=${options.region} zone=${options.zone})\n`,
        );
        if (!options.wait) return;
        const progress = progressLine(terminal);
        try {
          await waitForZone(client, name, {
            clock: terminal.edges.clock,
            condition: options.for,
            timeoutMs,
            pollMs,
            signal: terminal.signal,
            onProgress: (line) => progress.show(line),
          });
        } finally {
          progress.end();
        }
      });
    });
}

/** One line that is overwritten on a terminal, and one line each elsewhere. */
function progressLine({ stderr }: Terminal): { show(line: string): void; end(): void } {
  if (stderr.isTTY !== true) return { show: (line) => void stderr.write(`${line}\n`), end: () => {} };
  return { show: (line) => void stderr.write(`\r${line}\u001b[K`), end: () => void stderr.write("\n") };
}

function listCommand(terminal: Terminal) {
  return new Command("list")
    .description("List the zones.")
    .addOption(outputOption())
    .option("--kubeconfig <file>", kubeconfigHelp)
    .option("--context <name>", contextHelp)
    .addHelpText("after", "\nExamples:\n  kontinuum zone list\n  kontinuum zone list -o json")
    .action(async (options) => {
      const { findCondition } = await import("@kontinuum/controller");
      const { zoneKind } = await import("../kinds/index.ts");
      await withClient(terminal, options, async (client) => {
        const { items } = await client.list(zoneKind.resource, { namespace: systemNamespace });
        const condition = (type: string) => (zone: Zone) => findCondition(zone.status?.conditions, type);
        printList(
          terminal,
          options.output,
          items,
          {
            NAME: (zone) => zone.metadata.name,
            REGION: (zone) => zone.spec.region,
            ZONE: (zone) => zone.spec.zone,
            DOMAIN: (zone) => zone.spec.domain ?? "",
            READY: (zone) => condition("Ready")(zone)?.status ?? "",
            REASON: (zone) =>
              zone.metadata.deletionTimestamp ? "Removing" : (condition("Ready")(zone)?.reason ?? ""),
          },
          (zone) => zone.metadata.name,
        );
      });
    });
}

function removeCommand(terminal: Terminal) {
  return new Command("remove")
    .description("Remove a zone: its server, its cluster, and what is on its machines.")
    .argument("<name>", "name of the zone, <region>-<zone>")
    .requiredOption("--confirm <name>", "the name once more: the machines of the zone lose their data")
    .option("--kubeconfig <file>", kubeconfigHelp)
    .option("--context <name>", contextHelp)
    .addHelpText("after", "\nExample:\n  kontinuum zone remove eu-hel01 --confirm eu-hel01")
    .action(async (name, options, command) => {
      if (options.confirm !== name) {
        command.error(
          `kontinuum: --confirm must repeat the name ${JSON.stringify(name)}; nothing was removed`,
          { exitCode: 2 },
        );
      }
      const { zoneKind } = await import("../kinds/index.ts");
      await withClient(terminal, options, async (client) => {
        await client.delete(zoneKind.resource, { namespace: systemNamespace, name });
        terminal.stdout.write(
          `zone ${JSON.stringify(name)} is being removed; follow it with kontinuum zone list\n`,
        );
      });
    });
}

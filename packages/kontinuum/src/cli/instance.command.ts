/**
 * `kontinuum instance`: register and list machines.
 */
import { Command, type CommandUnknownOpts } from "@commander-js/extra-typings";
import { CodedError } from "@kontinuum/std";
import type { Instance } from "../kinds/index.ts";
import { labels, systemNamespace } from "../kinds/well-known.ts";
import { withClient } from "./operator-client.ts";
import { outputOption, printList } from "./output.ts";
import type { Terminal } from "./terminal.ts";

/** The command group `instance`. */
export function instanceCommand(terminal: Terminal): CommandUnknownOpts {
  const group = new Command("instance").description("Machines that clusters may be built from.");
  group.addCommand(addCommand(terminal));
  group.addCommand(listCommand(terminal));
  return group;
}

function addCommand(terminal: Terminal) {
  return new Command("add")
    .description("Register a machine that runs Talos in maintenance mode.")
    .argument("<address>", "address or host name")
    .option("-n, --namespace <name>", "namespace", systemNamespace)
    .option("-l, --label <key=value...>", "labels, for pools to select by")
    .option("--kubeconfig <file>", "kubeconfig (default: $KUBECONFIG, else ~/.kube/config)")
    .option("--context <name>", "context (default: the current one)")
    .addHelpText(
      "after",
      "\nExamples:\n  kontinuum instance add 10.0.0.5\n  kontinuum instance add node1.example.com -l rack=a1 -l size=large",
    )
    .action(async (address, options) => {
      const parsed = Object.fromEntries((options.label ?? []).map(parseLabel));
      const { addInstance } = await import("../domain/instance/instance.add.ts");
      await withClient(terminal, options, async (client) => {
        const instance = await addInstance(client, terminal.edges.network, {
          namespace: options.namespace,
          address,
          labels: parsed,
        });
        terminal.stdout.write(
          `instance ${JSON.stringify(instance.metadata.name)} registered (address=${instance.spec.interfaces?.[0] ?? address})\n`,
        );
      });
    });
}

function parseLabel(text: string): [string, string] {
  const equals = text.indexOf("=");
  if (equals < 1)
    throw new CodedError("invalid_argument", `${JSON.stringify(text)} is not a label: write key=value`);
  return [text.slice(0, equals), text.slice(equals + 1)];
}

function listCommand(terminal: Terminal) {
  return new Command("list")
    .description("List the machines of a namespace.")
    .option("-n, --namespace <name>", "namespace", systemNamespace)
    .addOption(outputOption())
    .option("--kubeconfig <file>", "kubeconfig (default: $KUBECONFIG, else ~/.kube/config)")
    .option("--context <name>", "context (default: the current one)")
    .addHelpText("after", "\nExamples:\n  kontinuum instance list\n  kontinuum instance list -o name")
    .action(async (options) => {
      const { findCondition } = await import("@kontinuum/controller");
      const { instanceKind } = await import("../kinds/index.ts");
      await withClient(terminal, options, async (client) => {
        const { items } = await client.list(instanceKind.resource, { namespace: options.namespace });
        const is = (type: string) => (one: Instance) =>
          findCondition(one.status?.conditions, type)?.status ?? "";
        printList(
          terminal,
          options.output,
          items,
          {
            NAME: (one) => one.metadata.name,
            ADDRESS: (one) => one.status?.identity?.address ?? one.spec.interfaces?.[0] ?? "",
            TALOS: (one) => one.status?.talos?.version ?? "",
            "CLAIMED BY": (one) => one.metadata.labels?.[labels.claimedBy] ?? "",
            DISCOVERED: is("Discovered"),
            CONFIGURED: is("Configured"),
            JOINED: is("Joined"),
            READY: is("Ready"),
          },
          (one) => one.metadata.name,
        );
      });
    });
}

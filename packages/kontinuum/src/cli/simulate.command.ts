/**
 * `kontinuum simulate`: machines that are not there, for trying things out.
 */
import { Command, type CommandUnknownOpts } from "@commander-js/extra-typings";
import { CodedError } from "@kontinuum/std";
import { outputOption, printList } from "./output.ts";
import type { Terminal } from "./terminal.ts";

/** Most machines of one simulated rack. */
const maxMachines = 1000;

/** The command group `simulate`. */
export function simulateCommand(terminal: Terminal): CommandUnknownOpts {
  const group = new Command("simulate").description("Simulated hardware, on loopback.");
  group.addCommand(rackCommand(terminal));
  return group;
}

function rackCommand(terminal: Terminal): CommandUnknownOpts {
  return new Command("rack")
    .description("Run simulated Talos machines, each on a loopback address of its own, until Ctrl-C.")
    .option("--machines <count>", "how many", "3")
    .option("--address <ip>", "first address, of 127.0.0.0/8", "127.77.0.10")
    .option("--state <folder>", "keep the rack in this folder (default: memory)")
    .option("--talos <version>", "release the machines boot, v1.11.0 to v1.14.x", "v1.13.0")
    .option("--faults <faults...>", "what is wrong: [machine:]fault[=value], all machines unless named", [])
    .addOption(outputOption())
    .addHelpText(
      "after",
      `
A hub finds them only when told that it may dial loopback:
  KONTINUUM_DISCOVERY_ALLOWED_RANGES=127.77.0.0/16

Faults:
  connections=refuse|blackhole|cut   handshake-delay=2s   call-delay=200ms   wrong-certificate
  crash-at=apply|install|boot|bootstrap|reset|upgrade     disk-failure       time-not-synced
  lose-reply=ApplyConfiguration      fail-calls=Version+Reset                clock-skew=-1h

Examples:
  kontinuum simulate rack
  kontinuum simulate rack --machines 20 --state rack/
  kontinuum simulate rack --faults call-delay=200ms node-002:disk-failure node-003:crash-at=install`,
    )
    .action(async (options) => {
      const machines = Number(options.machines);
      if (!Number.isSafeInteger(machines) || machines < 1 || machines > maxMachines) {
        throw new CodedError(
          "invalid_argument",
          `--machines must be from 1 to ${maxMachines}, not ${JSON.stringify(options.machines)}`,
        );
      }
      const { describeMachines, parseFaults, SimulatedRack, supportedContract } =
        await import("@kontinuum/talos");
      supportedContract(options.talos);
      const specs = describeMachines({
        count: machines,
        addressBase: options.address,
        talosVersion: options.talos,
      });
      const faults = parseFaults(options.faults);
      const missing = Object.keys(faults).find(
        (name) => name !== "*" && !specs.some((spec) => spec.name === name),
      );
      if (missing !== undefined) {
        throw new CodedError(
          "invalid_argument",
          `--faults names machine ${JSON.stringify(missing)}, which is not in the rack: they are node-001 to ${specs.at(-1)?.name ?? ""}`,
        );
      }
      const { kontinuumZoneRunner } = await import("../machines/zone-runner.ts");
      const rack = await SimulatedRack.create({
        machines: specs,
        addressBase: options.address,
        faults,
        edges: terminal.edges,
        runners: [kontinuumZoneRunner(terminal.edges)],
        ...(options.state === undefined ? {} : { statePath: options.state }),
      });
      printList(
        terminal,
        options.output,
        rack.nodes.map(({ spec: { name, address, uuid, talosVersion } }) => ({
          name,
          address,
          uuid,
          talosVersion,
        })),
        {
          NAME: (machine) => machine.name,
          ADDRESS: (machine) => machine.address,
          TALOS: (machine) => machine.talosVersion,
          UUID: (machine) => machine.uuid,
        },
        (machine) => machine.address,
      );
      await new Promise<void>((resolve) => {
        if (terminal.signal.aborted) resolve();
        terminal.signal.addEventListener("abort", () => resolve(), { once: true });
      });
      await rack.close();
    });
}

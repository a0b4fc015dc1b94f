/**
 * Commands of `krytonctl` for snapshots.
 */
import type { Command } from "@commander-js/extra-typings";
import { examples, inProject, machinePath, type Context } from "./ctl-context.ts";
import { columns } from "./ctl-tables.ts";

/** Adds snapshot, snapshots, restore and delete-snapshot. */
export function addSnapshotCommands(program: Command, context: Context): void {
  const { target } = context;
  const of = (id: string, snapshot: string, rest = ""): string =>
    machinePath(id, `/snapshots/${encodeURIComponent(snapshot)}${rest}`);
  program
    .command("snapshot")
    .description("take a snapshot")
    .argument("<id>")
    .option("--name <name>", "name of the snapshot", "")
    .addOption(context.project())
    .addOption(context.output())
    .addHelpText("after", examples("snapshot ID --name before-upgrade"))
    .action(async (id, { name, project, output }) => {
      const path = inProject(machinePath(id, "/snapshot"), project);
      target.finish(await target.call("POST", path, { name }), context.show(output, columns.snapshots));
    });
  program
    .command("snapshots")
    .description("snapshots of a machine")
    .argument("<id>")
    .addOption(context.project())
    .addOption(context.output())
    .addHelpText("after", examples("snapshots ID -o table"))
    .action(async (id, { project, output }) => {
      const path = inProject(machinePath(id, "/snapshots"), project);
      target.finish(await target.call("GET", path), context.show(output, columns.snapshots));
    });
  program
    .command("restore")
    .description("put a machine back to a snapshot")
    .argument("<id>")
    .argument("<snapshot>")
    .option("--start", "start the machine afterwards")
    .addOption(context.project())
    .addHelpText("after", examples("restore ID SNAPSHOT_ID --start"))
    .action(async (id, snapshot, { project, start }) => {
      const path = of(id, snapshot, `/restore${start ? "?start=true" : ""}`);
      target.finish(await target.call("POST", inProject(path, project)));
    });
  program
    .command("delete-snapshot")
    .description("delete a snapshot")
    .argument("<id>")
    .argument("<snapshot>")
    .addOption(context.project())
    .addHelpText("after", examples("delete-snapshot ID SNAPSHOT_ID"))
    .action(async (id, snapshot, { project }) =>
      target.finish(await target.call("DELETE", inProject(of(id, snapshot), project))),
    );
}

/**
 * Commands of `krytonctl` about the service: events, operations, images, jobs, doctor, storage, keys.
 */
import { Option, type Command } from "@commander-js/extra-typings";
import { at, stringAt, systemClock } from "@kontinuum/std";
import { examples, inProject, machinePath, type Context } from "./ctl-context.ts";
import { answerOf, type Answer } from "./ctl-http.ts";
import { columns, itemsOf, table, type Column } from "./ctl-tables.ts";
import { followEvents } from "./ctl-watch.ts";
import { ExitWith } from "./io.ts";

const setupPath = "/api/v1/storage/setup";
const pollMs = 1_000;

/** Commands that print what a path of the same name answers. */
const reads: readonly (readonly [string, string, readonly Column[] | undefined])[] = [
  ["images", "the image catalog, with what can be used here", columns.images],
  ["capabilities", "what the provider can do", undefined],
  ["doctor", "whether the installation is fit for use", columns.findings],
  ["storage", "storage classes and how fit they are for machines", columns.classes],
  ["jobs", "long work under way", columns.jobs],
  ["projects", "projects you may see", undefined],
  ["me", "who you are to the API", undefined],
  ["api-keys", "API keys and when each was last used (administrators)", columns.keys],
];

/** Adds the commands that are not about one machine. */
export function addServiceCommands(program: Command, context: Context): void {
  addEvents(program, context);
  addOperations(program, context);
  const { target, io } = context;
  for (const [name, description, layout] of reads) {
    program
      .command(name)
      .description(description)
      .addOption(context.output())
      .addHelpText("after", examples(name, ...(layout ? [`${name} -o table`] : [])))
      .action(async ({ output }) => {
        const answer = await target.call("GET", `/api/v1/${name}`);
        const items = itemsOf(answer.json);
        if (output !== "table" || !layout || (answer.status >= 400 && items.length < 2))
          return target.finish(answer);
        io.out(table(layout, items));
        if (answer.status >= 400) throw new ExitWith(1);
      });
  }
  program
    .command("summary")
    .description("counts and requested sizes of a project's machines")
    .addOption(context.project())
    .addHelpText("after", examples("summary --project ci"))
    .action(async ({ project }) =>
      target.finish(await target.call("GET", inProject("/api/v1/summary", project))),
    );
  program
    .command("set-storage")
    .description("default storage class; an empty string clears it")
    .argument("<class>")
    .addHelpText("after", examples("set-storage longhorn", 'set-storage ""'))
    .action(async (storageClass) =>
      target.finish(await target.call("PUT", "/api/v1/storage/config", { storageClass })),
    );
  addSetup(program, context);
}

function addEvents(program: Command, context: Context): void {
  const { target, io } = context;
  program
    .command("events")
    .description("what happened, newest first")
    .option("--watch", "go on with what happens, one JSON event a line")
    .addOption(context.output())
    .addHelpText("after", examples("events -o table", "events --watch"))
    .action(async ({ output, watch }) => {
      target.finish(
        await target.call("GET", "/api/v1/events?limit=50"),
        context.show(output, columns.events),
      );
      if (watch) await followEvents(target, io, undefined, undefined);
    });
}

function addOperations(program: Command, context: Context): void {
  const { target } = context;
  program
    .command("operations")
    .description("provider work of a project or of one machine, newest first")
    .option("--machine <id>", "only this machine's")
    .addOption(context.project())
    .addOption(context.output())
    .addHelpText("after", examples("operations -o table", "operations --machine ID"))
    .action(async ({ machine, project, output }) => {
      const path = machine === undefined ? "/api/v1/operations" : machinePath(machine, "/operations");
      target.finish(
        await target.call("GET", inProject(path, project)),
        context.show(output, columns.operations),
      );
    });
  for (const [verb, description] of [
    ["cancel", "cancel an operation"],
    ["retry", "do an operation that failed once more"],
  ] as const) {
    program
      .command(verb)
      .description(description)
      .argument("<operation>")
      .addOption(context.output())
      .addHelpText("after", examples(`${verb} OPERATION_ID`))
      .action(async (id, { output }) => {
        const path = `/api/v1/operations/${encodeURIComponent(id)}/${verb}`;
        target.finish(await target.call("POST", path), context.show(output, columns.operations));
      });
  }
}

function addSetup(program: Command, context: Context): void {
  const { target } = context;
  program
    .command("setup-storage")
    .description("set Longhorn or Rook up in the connected cluster (administrators)")
    .addOption(new Option("--backend <name>", "what to set up").choices(["longhorn", "rook-ceph"] as const))
    .addOption(
      new Option("--rook-mode <mode>", "how Rook gets its disks").choices([
        "lab",
        "devices",
        "device",
        "pool-only",
      ] as const),
    )
    .option("--device <path>", "the disk of --rook-mode device")
    .option("--wipe-device", "let Rook take a disk of a former Ceph cluster")
    .option("--no-default", "do not make it the default class")
    .option("--cancel", "stop the set-up that runs")
    .addOption(context.wait())
    .addHelpText(
      "after",
      examples(
        "setup-storage --backend longhorn --wait",
        "setup-storage --backend rook-ceph --rook-mode device --device /dev/sdc",
        "setup-storage --cancel",
      ),
    )
    .action(async (options) => {
      if (options.cancel) return target.finish(await target.call("POST", `${setupPath}/cancel`));
      const answer = await target.call("POST", setupPath, {
        backend: options.backend ?? "",
        ...(options.rookMode === undefined ? {} : { rookMode: options.rookMode }),
        ...(options.device === undefined ? {} : { device: options.device }),
        ...(options.wipeDevice ? { wipeDevice: true } : {}),
        setDefault: options.default,
      });
      if (answer.status >= 400 || !options.wait) return target.finish(answer);
      const ended = await follow(context);
      target.finish(ended.status >= 400 ? ended : answerOf(ended.status, at(ended.json, "setup")));
      if (stringAt(ended.json, "state") !== "succeeded") throw new ExitWith(1);
    });
}

/** Prints the log of a set-up on standard error as it grows, until the set-up has ended. */
async function follow({ target, io }: Context): Promise<Answer> {
  let last: string | undefined;
  for (;;) {
    const answer = await target.call("GET", setupPath);
    if (answer.status >= 400) return answer;
    const logs = at(answer.json, "logs");
    const lines = Array.isArray(logs) ? logs.filter((line) => typeof line === "string") : [];
    for (const line of lines.slice(last === undefined ? 0 : lines.lastIndexOf(last) + 1)) io.err(`${line}\n`);
    last = lines.at(-1) ?? last;
    if (stringAt(answer.json, "state") !== "running") return answer;
    await systemClock.sleep(pollMs);
  }
}

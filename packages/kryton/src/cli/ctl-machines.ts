/**
 * Commands of `krytonctl` for machines.
 */
import { Option, type Command } from "@commander-js/extra-typings";
import { stringAt } from "@kontinuum/std";
import { collect, examples, inProject, machinePath, whole, type Context } from "./ctl-context.ts";
import { createBody, dockurTexts, labelsOf } from "./ctl-create.ts";
import { answerOf, type Answer } from "./ctl-http.ts";
import { columns, itemsOf } from "./ctl-tables.ts";
import { followEvents } from "./ctl-watch.ts";
import { ExitWith } from "./io.ts";

/** Adds list, create, get, power verbs, update and clone. */
export function addMachineCommands(program: Command, context: Context): void {
  addList(program, context);
  addCreate(program, context);
  addGet(program, context);
  addVerbs(program, context);
  addUpdate(program, context);
  addClone(program, context);
}

function addList(program: Command, context: Context): void {
  const { target, io } = context;
  program
    .command("list")
    .description("machines of a project")
    .addOption(context.project())
    .addOption(context.output())
    .option("--all", "every page, not only the first")
    .option("--watch", "show again whenever something changes")
    .option("--label <key=value>", "only machines with this label; may be repeated", collect, [])
    .option("--state <state>", "only machines in this state")
    .addHelpText("after", examples("list", "list --all -o table --label team=build", "list --watch -o table"))
    .action(async (options) => {
      const labels = options.label.map((label) => `&label=${encodeURIComponent(label)}`).join("");
      const state = options.state === undefined ? "" : `&state=${encodeURIComponent(options.state)}`;
      const path = `${inProject("/api/v1/machines", options.project)}${labels}${state}${options.all ? "&limit=500" : ""}`;
      const page = (cursor?: string) =>
        target.call("GET", `${path}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`);
      const once = async (): Promise<void> => {
        const answer = options.all ? await allPages(page) : await page();
        target.finish(answer, context.show(options.output, columns.machines));
      };
      await once();
      if (options.watch) await followEvents(target, io, options.project, once);
    });
}

function addCreate(program: Command, context: Context): void {
  const { target, io } = context;
  const create = program
    .command("create")
    .description("create a machine")
    .argument("<name>")
    .addOption(context.project())
    .option("--image <id>", "catalog image", "windows-server-2025")
    .option("--cpu <n>", "virtual CPUs", whole, 4)
    .option("--memory <MiB>", "memory", whole, 8192)
    .option("--disk <GiB>", "disk", whole, 80)
    .option("--storage-class <name>", "storage class of the disk")
    .option("--volume-mode <mode>", "Filesystem or Block")
    .option("--network <id>", "network", "")
    .option("--ttl <minutes>", "time to live; 0 for none", whole, 0)
    .option("--ssh-key <file>", "public key for the Linux user")
    .option("--username <name>", "Linux user")
    .option("--label <key=value>", "label; may be repeated", collect, [])
    .option("--dockur-extra-disks <GiB,…>", "extra disks")
    .option("--dockur-audio", "audio device")
    .option("--dockur-secure-boot", "secure boot and TPM")
    .option("--dockur-no-autologin", "ask for the password at the console")
    .addOption(context.wait())
    .addOption(context.timeout())
    .addOption(context.output())
    .addHelpText(
      "after",
      examples(
        "create web --image debian-13 --cpu 2 --memory 2048 --disk 20 --ssh-key ~/.ssh/id_ed25519.pub",
        "create runner --image windows-11-pro --ttl 240 --wait -o table",
      ),
    );
  for (const flag of Object.keys(dockurTexts)) create.option(`--${flag} <value>`, `dockur: ${flag.slice(7)}`);
  create.action(async (name, options) => {
    const given: Record<string, unknown> = create.opts();
    const dockur = Object.fromEntries(
      Object.entries(dockurTexts).flatMap(([flag, field]) => {
        const value = given[flag.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())];
        return typeof value === "string" ? [[field, value]] : [];
      }),
    );
    const body = await createBody(name, { ...options, dockur }, io);
    const answer = await target.call("POST", "/api/v1/machines", body);
    const settled = options.wait ? await context.settle(answer, options.project, options.timeout) : answer;
    target.finish(settled, context.show(options.output, columns.machines));
    if (options.wait && stringAt(settled.json, "state") === "failed") throw new ExitWith(1);
  });
}

function addGet(program: Command, context: Context): void {
  const { target } = context;
  program
    .command("get")
    .description("a machine")
    .argument("<id>")
    .addOption(context.project())
    .addOption(new Option("--name <name>").hideHelp())
    .addOption(context.output())
    .addHelpText("after", examples("get 7c0a6a1e-54a3-4a3a-8f2b-0d7f3f0c9a11 -o table"))
    .action(async (id, options) =>
      target.finish(
        await target.call("GET", inProject(machinePath(id), options.project)),
        context.show(options.output, columns.machines),
      ),
    );
}

const verbs = [
  ["start", "POST", "/start", "start a machine"],
  ["stop", "POST", "/stop", "stop a machine"],
  ["restart", "POST", "/restart", "restart a machine"],
  ["pause", "POST", "/pause", "freeze a running machine"],
  ["resume", "POST", "/resume", "let a paused machine go on"],
  ["delete", "DELETE", "", "delete a machine"],
] as const;

function addVerbs(program: Command, context: Context): void {
  const { target } = context;
  for (const [verb, method, rest, description] of verbs) {
    const command = program
      .command(verb)
      .description(description)
      .argument("<id>")
      .addOption(context.project())
      .addOption(new Option("--name <name>").hideHelp())
      .addOption(context.wait())
      .addOption(context.timeout())
      .addOption(context.output());
    if (verb === "stop") {
      command.option("--force", "cut the power");
      command.option("--force-after <seconds>", "cut the power when the guest has not obeyed by then", whole);
    }
    command.addHelpText(
      "after",
      examples(`${verb} ID --wait`, ...(verb === "stop" ? ["stop ID --force-after 60"] : [])),
    );
    command.action(async (id, options) => {
      const given: Record<string, unknown> = command.opts();
      const after = given["forceAfter"];
      const query =
        given["force"] === true
          ? "?force=true"
          : typeof after === "number"
            ? `?forceAfterSeconds=${after}`
            : "";
      const path = inProject(machinePath(id, `${rest}${query}`), options.project);
      const answer = await target.call(method, path);
      const settled = options.wait
        ? await context.settle(answer, options.project, options.timeout, id)
        : answer;
      target.finish(settled, context.show(options.output, columns.machines));
    });
  }
}

function addUpdate(program: Command, context: Context): void {
  const { target, io } = context;
  program
    .command("update")
    .description("rename, label, resize a machine, or give it another time to live")
    .argument("<id>")
    .addOption(context.project())
    .option("--name <name>", "new name")
    .option("--cpu <n>", "virtual CPUs", whole)
    .option("--memory <MiB>", "memory", whole)
    .option("--disk <GiB>", "disk; never smaller than before", whole)
    .option("--ttl <minutes>", "time to live from now; 0 for none", whole)
    .option("--label <key=value>", "label; may be repeated; replaces all labels", collect, [])
    .addOption(context.wait())
    .addOption(context.timeout())
    .addOption(context.output())
    .addHelpText(
      "after",
      examples("update ID --name web-2 --label team=build", "update ID --cpu 4 --memory 8192 --wait"),
    )
    .action(async (id, { cpu, memory, disk, ttl, name, label, ...options }) => {
      const body = {
        ...(name === undefined ? {} : { name }),
        ...(cpu === undefined && memory === undefined ? {} : { compute: { cpu, memoryMiB: memory } }),
        ...(disk === undefined ? {} : { disk: { sizeGiB: disk } }),
        ...(ttl === undefined ? {} : { ttlMinutes: ttl }),
        ...(label.length === 0 ? {} : { labels: labelsOf(label, io) }),
      };
      const answer = await target.call("PATCH", inProject(machinePath(id), options.project), body);
      const settled = options.wait ? await context.settle(answer, options.project, options.timeout) : answer;
      target.finish(settled, context.show(options.output, columns.machines));
    });
}

function addClone(program: Command, context: Context): void {
  const { target } = context;
  program
    .command("clone")
    .description("create a machine with a copy of another's disk")
    .argument("<id>")
    .argument("<name>")
    .addOption(context.project())
    .addOption(context.wait())
    .addOption(context.timeout())
    .addOption(context.output())
    .addHelpText("after", examples("clone ID web-copy --wait"))
    .action(async (id, name, options) => {
      const path = inProject(machinePath(id, "/clone"), options.project);
      const answer = await target.call("POST", path, { name });
      const settled = options.wait ? await context.settle(answer, options.project, options.timeout) : answer;
      target.finish(settled, context.show(options.output, columns.machines));
    });
}

/** Follows cursors and joins the items into one answer. */
async function allPages(page: (cursor?: string) => Promise<Answer>): Promise<Answer> {
  const items: unknown[] = [];
  let cursor: string | undefined;
  for (;;) {
    const answer = await page(cursor);
    if (answer.status >= 400) return answer;
    items.push(...itemsOf(answer.json));
    cursor = stringAt(answer.json, "nextCursor");
    if (cursor === undefined) return answerOf(answer.status, { items });
  }
}

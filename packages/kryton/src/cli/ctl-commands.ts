/**
 * The commands of `krytonctl`.
 */
import { Command, InvalidArgumentError, Option } from "@commander-js/extra-typings";
import { stringAt, systemClock } from "@kontinuum/std";
import { completionScript } from "./completion.ts";
import { createBody, dockurTexts } from "./ctl-create.ts";
import { jsonText, Target, type Answer } from "./ctl-http.ts";
import { columns, itemsOf, table, type Column } from "./ctl-tables.ts";
import { followEvents } from "./ctl-watch.ts";
import { generateToken, hashToken } from "./generate-token.ts";
import { ExitWith, type Io } from "./io.ts";

/** How long `--wait` waits, seconds, unless `--timeout` says otherwise. */
const waitSeconds = 600;
const pollMs = 500;

type Output = "json" | "table";

const whole = (text: string): number => {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError("Not a whole number.");
  return Number(text);
};

/** Builds the program; nothing runs until it is given arguments. */
export function buildProgram(io: Io): Command {
  const target = new Target(io);
  const program: Command = new Command("krytonctl")
    .description("Talks to the Kryton machine API at KRYTON_URL with KRYTON_TOKEN.")
    .exitOverride()
    .configureOutput({ writeOut: io.out, writeErr: io.err })
    .configureHelp({ showGlobalOptions: true })
    .showSuggestionAfterError(true);
  const output = (): Option<"-o, --output <format>", undefined, "json", undefined, false, Output> =>
    new Option("-o, --output <format>", "json or table")
      .choices(["json", "table"] as const)
      .default("json" as const);
  const project = () =>
    new Option("--project <name>", "project of the machine").default(target.project, "KRYTON_PROJECT");
  const wait = () => new Option("--wait", "wait until the machine is where it should be");
  const show =
    (format: Output, layout: readonly Column[]) =>
    (answer: Answer): string =>
      format === "table" ? table(layout, itemsOf(answer.json)) : jsonText(answer);
  const inProject = (path: string, name: string): string =>
    `${path}${path.includes("?") ? "&" : "?"}project=${encodeURIComponent(name)}`;
  const machinePath = (id: string, rest = ""): string => `/api/v1/machines/${encodeURIComponent(id)}${rest}`;

  program
    .command("list")
    .description("machines of a project")
    .addOption(project())
    .addOption(output())
    .option("--all", "every page, not only the first")
    .option("--watch", "show again whenever something changes")
    .option("--label <key=value>", "only machines with this label", collect, [])
    .action(async (options) => {
      const labels = options.label.map((label) => `&label=${encodeURIComponent(label)}`).join("");
      const page = (cursor?: string) =>
        target.call(
          "GET",
          `${inProject("/api/v1/machines", options.project)}${labels}${options.all ? "&limit=500" : ""}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`,
        );
      const once = async (): Promise<void> => {
        const answer = options.all ? await allPages(page) : await page();
        target.finish(answer, show(options.output, columns.machines));
      };
      await once();
      if (options.watch) await followEvents(target, io, options.project, once);
    });

  const create = program
    .command("create")
    .description("create a machine")
    .argument("<name>")
    .addOption(project())
    .option("--image <id>", "catalog image", "windows-server-2025")
    .option("--cpu <n>", "virtual CPUs", whole, 4)
    .option("--memory <MiB>", "memory", whole, 8192)
    .option("--disk <GiB>", "disk", whole, 80)
    .option("--network <id>", "network", "")
    .option("--ttl <minutes>", "time to live; 0 for none", whole, 0)
    .option("--ssh-key <file>", "public key for the Linux user")
    .option("--username <name>", "Linux user")
    .option("--label <key=value>", "label; may be repeated", collect, [])
    .option("--dockur-extra-disks <GiB,…>", "extra disks")
    .option("--dockur-audio", "audio device")
    .option("--dockur-secure-boot", "secure boot and TPM")
    .option("--no-dockur-autologin", "ask for the password at the console")
    .addOption(new Option("--dockur-no-autologin").hideHelp())
    .addOption(wait())
    .option("--timeout <seconds>", "limit of --wait", whole, waitSeconds)
    .addOption(output());
  for (const flag of Object.keys(dockurTexts)) create.option(`--${flag} <value>`, `dockur: ${flag.slice(7)}`);
  create.action(async (name, options) => {
    const given: Record<string, unknown> = create.opts();
    const dockur = Object.fromEntries(
      Object.entries(dockurTexts).flatMap(([flag, field]) => {
        const value = given[flag.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())];
        return typeof value === "string" ? [[field, value]] : [];
      }),
    );
    const autologin = options.dockurAutologin && given["dockurNoAutologin"] !== true;
    const body = await createBody(name, { ...options, dockurAutologin: autologin, dockur }, io);
    const answer = await target.call("POST", "/api/v1/machines", body);
    const settled = options.wait ? await settle(answer, options.project, options.timeout) : answer;
    target.finish(settled, show(options.output, columns.machines));
    if (options.wait && stringAt(settled.json, "state") === "failed") throw new ExitWith(1);
  });

  /** Reads the machine again until it is not on its way any more. */
  const settle = async (first: Answer, projectName: string, seconds: number): Promise<Answer> => {
    const id = stringAt(first.json, "id");
    let answer = first;
    const deadline = systemClock.monotonic() + seconds * 1000;
    while (answer.status < 400 && id !== undefined && onItsWay(answer)) {
      if (systemClock.monotonic() > deadline) {
        io.err(`krytonctl: machine ${id} is still ${stringAt(answer.json, "state")} after ${seconds} s\n`);
        target.finish(answer);
        throw new ExitWith(1);
      }
      await systemClock.sleep(pollMs);
      answer = await target.call("GET", inProject(machinePath(id), projectName));
    }
    return answer;
  };

  program
    .command("get")
    .description("a machine")
    .argument("<id>")
    .addOption(project())
    .addOption(new Option("--name <name>").hideHelp())
    .addOption(output())
    .action(async (id, options) =>
      target.finish(
        await target.call("GET", inProject(machinePath(id), options.project)),
        show(options.output, columns.machines),
      ),
    );
  const verbs = [
    ["start", "POST", "/start"],
    ["stop", "POST", "/stop"],
    ["restart", "POST", "/restart"],
    ["delete", "DELETE", ""],
  ] as const;
  for (const [verb, method, rest] of verbs) {
    const command = program
      .command(verb)
      .description(`${verb} a machine`)
      .argument("<id>")
      .addOption(project())
      .addOption(new Option("--name <name>").hideHelp())
      .addOption(wait())
      .option("--timeout <seconds>", "limit of --wait", whole, waitSeconds)
      .addOption(output());
    if (verb === "stop") command.option("--force", "cut the power");
    command.action(async (id, options) => {
      const given: Record<string, unknown> = command.opts();
      const force = given["force"] === true ? "?force=true" : "";
      const answer = await target.call(
        method,
        inProject(machinePath(id, `${rest}${force}`), options.project),
      );
      const settled = options.wait ? await settle(answer, options.project, options.timeout) : answer;
      target.finish(settled, show(options.output, columns.machines));
    });
  }
  program
    .command("snapshot")
    .description("take a snapshot")
    .argument("<id>")
    .option("--name <name>", "name of the snapshot", "")
    .addOption(project())
    .addOption(output())
    .action(async (id, options) =>
      target.finish(
        await target.call("POST", inProject(machinePath(id, "/snapshot"), options.project), {
          name: options.name,
        }),
        show(options.output, columns.snapshots),
      ),
    );
  program
    .command("snapshots")
    .description("snapshots of a machine")
    .argument("<id>")
    .addOption(project())
    .addOption(output())
    .action(async (id, options) =>
      target.finish(
        await target.call("GET", inProject(machinePath(id, "/snapshots"), options.project)),
        show(options.output, columns.snapshots),
      ),
    );
  program
    .command("restore")
    .description("put a machine back to a snapshot")
    .argument("<id>")
    .argument("<snapshot>")
    .addOption(project())
    .action(async (id, snapshot, options) => {
      const path = machinePath(id, `/snapshots/${encodeURIComponent(snapshot)}/restore`);
      target.finish(await target.call("POST", inProject(path, options.project)));
    });
  program
    .command("delete-snapshot")
    .description("delete a snapshot")
    .argument("<id>")
    .argument("<snapshot>")
    .addOption(project())
    .action(async (id, snapshot, options) => {
      const path = machinePath(id, `/snapshots/${encodeURIComponent(snapshot)}`);
      target.finish(await target.call("DELETE", inProject(path, options.project)));
    });
  program
    .command("events")
    .description("what happened, newest first")
    .option("--watch", "go on with what happens, one JSON event a line")
    .addOption(output())
    .action(async (options) => {
      target.finish(
        await target.call("GET", "/api/v1/events?limit=50"),
        show(options.output, columns.events),
      );
      if (options.watch) await followEvents(target, io, undefined, undefined);
    });
  program
    .command("operations")
    .description("provider work of a project, newest first")
    .addOption(project())
    .addOption(output())
    .action(async (options) =>
      target.finish(
        await target.call("GET", inProject("/api/v1/operations", options.project)),
        show(options.output, columns.operations),
      ),
    );
  const reads = {
    images: columns.images,
    capabilities: undefined,
    doctor: columns.findings,
    storage: undefined,
  };
  for (const [name, layout] of Object.entries(reads)) {
    program
      .command(name)
      .description(`GET ${name}`)
      .addOption(output())
      .action(async (options) => {
        const answer = await target.call("GET", `/api/v1/${name}`);
        if (options.output === "table" && layout && answer.json !== undefined) {
          io.out(table(layout, itemsOf(answer.json)));
          if (answer.status >= 400) throw new ExitWith(1);
        } else {
          target.finish(answer);
        }
      });
  }
  program
    .command("set-storage")
    .description("default storage class; an empty string clears it")
    .argument("<class>")
    .action(async (storageClass) =>
      target.finish(await target.call("PUT", "/api/v1/storage/config", { storageClass })),
    );
  program
    .command("generate-token")
    .description("a new API token")
    .action(() => io.out(`${generateToken(io.random)}\n`));
  program
    .command("hash-token")
    .description("the digest of a token, for a keys file")
    .argument("<token>")
    .action((token) => io.out(`${hashToken(token)}\n`));
  program
    .command("completion")
    .description("completion script for a shell")
    .addArgument(program.createArgument("<shell>").choices(["bash", "zsh", "fish"]))
    .action((shell) => io.out(completionScript(String(shell), program)));
  return program;
}

function onItsWay(answer: Answer): boolean {
  const state = stringAt(answer.json, "state") ?? "";
  return ["pending", "provisioning", "starting", "stopping", "deleting", "migrating"].includes(state);
}

function collect(value: string, all: string[]): string[] {
  return [...all, value];
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
    if (cursor === undefined) return { ...answer, json: { items } };
  }
}

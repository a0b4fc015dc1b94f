/**
 * `ApplyConfiguration`: taking a configuration, or saying what is wrong with it.
 *
 * The checks and their order are Talos' own. In maintenance mode ("no main document is active") whoever
 * reaches the port may configure the machine; afterwards only an admin.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { readMachineConfig } from "../../config/machine-config-facts.ts";
import { validateForNode } from "../../config/validate-for-node.ts";
import { validateMachineConfig } from "../../config/validate-machine-config.ts";
import { parseVersionContract } from "../../config/version-contract.ts";
import {
  ApplyConfigurationRequest_Mode as Mode,
  type ApplyConfigurationRequest,
  type ApplyConfigurationSchema,
} from "../../gen/machine/machine_pb.ts";
import {
  failedPrecondition,
  invalidArgument,
  permissionDenied,
  unimplemented,
  unknownError,
} from "../call-error.ts";
import { changesNeedingReboot } from "../config-change.ts";
import { candidateDisks } from "../install-target.ts";
import { readNodeConfig, type NodeConfig } from "../node-config.ts";
import type { SimulatedNode } from "../node.ts";
import { roles } from "../role.ts";
import { unifiedDiff } from "../unified-diff.ts";
import type { Caller } from "./call-context.ts";

type Reply = MessageInitShape<typeof ApplyConfigurationSchema>;

/** How long a trial lasts unless told, milliseconds. */
const tryMs = 60_000;

/** Modes that maintenance mode refused before Talos 1.13. */
const unsupportedInMaintenance: ReadonlyMap<Mode, string> = new Map([
  [Mode.NO_REBOOT, "no-reboot"],
  [Mode.STAGED, "staged"],
]);

interface NodeApplies {
  isBusy: boolean;
  willReboot: boolean;
  trial: { clear(): void } | undefined;
}

const applies = new WeakMap<SimulatedNode, NodeApplies>();

/** See the module's comment. */
export async function applyConfiguration(request: ApplyConfigurationRequest, caller: Caller): Promise<Reply> {
  const { node } = caller;
  const state = applies.get(node) ?? { isBusy: false, willReboot: false, trial: undefined };
  applies.set(node, state);
  if (state.isBusy) throw failedPrecondition("another apply configuration call is running");
  if (state.willReboot && node.sequence !== undefined) {
    throw failedPrecondition("a reboot has been scheduled by an earlier apply configuration call");
  }
  if (node.config && !caller.roles.includes(roles.admin)) throw permissionDenied("not authorized");
  state.isBusy = true;
  try {
    return await apply(request, node, state);
  } finally {
    state.isBusy = false;
  }
}

async function apply(
  request: ApplyConfigurationRequest,
  node: SimulatedNode,
  state: NodeApplies,
): Promise<Reply> {
  const active = node.config;
  const { minor } = parseVersionContract(node.record.talosVersion);
  const unsupported = !active && minor < 13 ? unsupportedInMaintenance.get(request.mode) : undefined;
  if (unsupported !== undefined) {
    throw unimplemented(`apply configuration --mode='${unsupported}' is not supported in maintenance mode`);
  }
  if (active && minor >= 14 && request.mode === Mode.REBOOT) {
    throw unimplemented("apply configuration --mode='reboot' is not supported");
  }
  if (request.mode !== Mode.TRY) {
    state.trial?.clear();
    state.trial = undefined;
  }
  const text = Buffer.from(request.data).toString("utf8");
  const { warnings, next } = check(text, node, minor);
  const changes = active && next ? changesNeedingReboot(active, next) : [];
  const mode = effectiveMode(request.mode, active, changes);
  const reply = { warnings, mode, modeDetails: details(mode, request, node) };
  if (request.dryRun) return { ...reply, modeDetails: dryRun(active, text, reply.modeDetails) };
  await takeEffect(mode, text, request, node, state);
  return reply;
}

/** The node's own checks; `next` is absent for a configuration without main document. */
function check(
  text: string,
  node: SimulatedNode,
  minor: number,
): { warnings: string[]; next: NodeConfig | undefined } {
  const { talosVersion, installed } = node.record;
  const validation = validateMachineConfig(text, "metal", { talosVersion, installed });
  if (validation.decodeErrors.length > 0) {
    const message = `failed to parse config: ${multiError(validation.decodeErrors)}`;
    throw !node.config && minor < 13 ? unknownError(message) : invalidArgument(message);
  }
  const next = readNodeConfig(text);
  if (!next && node.config)
    throw invalidArgument("the applied machine configuration doesn't contain v1alpha1 config");
  if (validation.errors.length > 0) {
    throw invalidArgument(`configuration validation failed: ${multiError(validation.errors)}`);
  }
  if (next) {
    const disks = candidateDisks(node.spec);
    const errors = validateForNode(readMachineConfig(next.documents), { talosVersion, disks, installed });
    if (errors.length > 0)
      throw invalidArgument(`runtime configuration validation failed: ${multiError(errors)}`);
  }
  return { warnings: [...validation.warnings], next };
}

/** The text Go's multi-error makes. */
function multiError(errors: readonly string[]): string {
  const count = errors.length === 1 ? "1 error occurred" : `${errors.length} errors occurred`;
  return `${count}:\n${errors.map((error) => `\t* ${error}\n`).join("")}\n`;
}

function effectiveMode(mode: Mode, active: NodeConfig | undefined, changes: readonly string[]): Mode {
  if (!active) return mode === Mode.REBOOT || mode === Mode.AUTO ? Mode.NO_REBOOT : mode;
  if (mode === Mode.AUTO) return changes.length === 0 ? Mode.NO_REBOOT : Mode.REBOOT;
  if ((mode === Mode.TRY || mode === Mode.NO_REBOOT) && changes.length > 0) {
    throw invalidArgument(`this config change can't be applied in immediate mode: ${changes.join(", ")}`);
  }
  return mode;
}

function details(mode: Mode, request: ApplyConfigurationRequest, node: SimulatedNode): string {
  switch (mode) {
    case Mode.REBOOT:
      return "Applied configuration with a reboot";
    case Mode.STAGED:
      return "Staged configuration to be applied after the next reboot";
    case Mode.TRY:
      return `Applied configuration without a reboot\nThe config is applied in 'try' mode and will be automatically reverted back in ${goDuration(trialMs(request))}`;
    default:
      return node.config || request.mode !== Mode.REBOOT
        ? "Applied configuration without a reboot"
        : "Applied configuration without a reboot: this config change can be applied in immediate mode";
  }
}

function dryRun(active: NodeConfig | undefined, text: string, done: string): string {
  const diff = unifiedDiff(active?.text ?? "", text);
  return `Dry run summary:\n${done} (skipped in dry-run).\nConfig diff:\n\n${diff === "" ? "No changes." : diff}`;
}

/** Whole seconds as Go writes them: `1m0s`. */
function goDuration(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  if (hours > 0) return `${hours}h${minutes}m${seconds % 60}s`;
  return minutes > 0 ? `${minutes}m${seconds % 60}s` : `${seconds}s`;
}

function trialMs(request: ApplyConfigurationRequest): number {
  return request.tryModeTimeout ? durationMs(request.tryModeTimeout) : tryMs;
}

async function takeEffect(
  mode: Mode,
  text: string,
  request: ApplyConfigurationRequest,
  node: SimulatedNode,
  state: NodeApplies,
): Promise<void> {
  const before = node.config;
  if (mode === Mode.STAGED) return node.keepForNextBoot(text);
  if (!before) return node.configure(text);
  if (mode === Mode.TRY) {
    await node.activate(text, { keep: false });
    state.trial?.clear();
    state.trial = node.edges.clock.timer(
      trialMs(request),
      () => void node.activate(before.text, { keep: false }),
    );
    return;
  }
  if (mode === Mode.NO_REBOOT) return node.activate(text, { keep: true });
  await node.keepForNextBoot(text);
  state.willReboot = true;
  node.reboot();
}

/**
 * The body of `krytonctl create`, from its flags.
 */
import { readFile } from "node:fs/promises";
import { messageOf } from "@kontinuum/std";
import { sshKeyProblem, usernamePattern } from "../model/initialization.ts";
import { ExitWith, type Io } from "./io.ts";

/** Text options of the dockur provider: flag name to body field. */
export const dockurTexts = {
  "dockur-username": "username",
  "dockur-password": "password",
  "dockur-hostname": "hostname",
  "dockur-language": "language",
  "dockur-region": "region",
  "dockur-keyboard": "keyboard",
  "dockur-product-key": "productKey",
  "dockur-domain": "domain",
  "dockur-domain-ou": "domainOu",
  "dockur-shared-dir": "sharedDir",
  "dockur-oem-dir": "oemDir",
  "dockur-command": "command",
  "dockur-custom-iso": "customIso",
  "dockur-edition": "edition",
} as const;

/** The flags of `create`, by their long names. */
export interface CreateFlags {
  readonly image: string;
  readonly cpu: number;
  readonly memory: number;
  readonly disk: number;
  readonly storageClass?: string | undefined;
  readonly volumeMode?: string | undefined;
  readonly network: string;
  readonly ttl: number;
  readonly project: string;
  readonly sshKey?: string | undefined;
  readonly username?: string | undefined;
  readonly label: readonly string[];
  readonly dockurExtraDisks?: string | undefined;
  readonly dockurAudio?: boolean | undefined;
  readonly dockurSecureBoot?: boolean | undefined;
  readonly dockurNoAutologin?: boolean | undefined;
  /** Texts of {@link dockurTexts}, by body field. */
  readonly dockur: Readonly<Record<string, string>>;
}

/** Labels of repeated `key=value` flags. Ends the command with status 2 for anything else. */
export function labelsOf(flags: readonly string[], io: Io): Record<string, string> {
  return Object.fromEntries(
    flags.map((text) => {
      const at = text.indexOf("=");
      if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
      io.err(`krytonctl: --label ${text}: use key=value\n`);
      throw new ExitWith(2);
    }),
  );
}

/** Builds the body. Ends the command with status 2 for what can be seen to be wrong from here. */
export async function createBody(name: string, flags: CreateFlags, io: Io): Promise<unknown> {
  const fail = (message: string): never => {
    io.err(`krytonctl: ${message}\n`);
    throw new ExitWith(2);
  };
  const initialization: Record<string, unknown> = {};
  if (flags.sshKey) {
    let key = "";
    try {
      key = (await readFile(flags.sshKey, "utf8")).trim();
    } catch (error) {
      io.err(`krytonctl: --ssh-key: ${messageOf(error)}\n`);
      throw new ExitWith(1);
    }
    const problem = sshKeyProblem(key);
    if (problem) fail(`--ssh-key ${flags.sshKey}: the key ${problem}`);
    initialization["sshAuthorizedKeys"] = [key];
  }
  if (flags.username) {
    if (!usernamePattern.test(flags.username)) fail(`--username must match ${usernamePattern.source}`);
    initialization["username"] = flags.username;
  }
  const dockur: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(flags.dockur)) if (value.trim() !== "") dockur[field] = value;
  if (flags.dockurExtraDisks) {
    dockur["extraDisksGiB"] = flags.dockurExtraDisks.split(",").map((part) => {
      const size = Number(part.trim());
      return /^\d+$/.test(part.trim()) && size >= 1 && size <= 65_536
        ? size
        : fail(`--dockur-extra-disks: ${JSON.stringify(part)} is not a size in GiB`);
    });
  }
  if (flags.dockurAudio) dockur["audio"] = true;
  if (flags.dockurSecureBoot) dockur["secureBoot"] = true;
  if (flags.dockurNoAutologin) dockur["autologin"] = false;
  const labels = labelsOf(flags.label, io);
  return {
    project: flags.project,
    name,
    image: flags.image,
    compute: { cpu: flags.cpu, memoryMiB: flags.memory },
    disk: {
      sizeGiB: flags.disk,
      ...(flags.storageClass ? { storageClass: flags.storageClass } : {}),
      ...(flags.volumeMode ? { volumeMode: flags.volumeMode } : {}),
    },
    network: { networkId: flags.network },
    ttlMinutes: flags.ttl,
    ...(Object.keys(labels).length > 0 ? { labels } : {}),
    ...(Object.keys(initialization).length > 0 ? { initialization } : {}),
    ...(Object.keys(dockur).length > 0 ? { dockur } : {}),
  };
}

/**
 * What a Linux guest is told on its first boot: a user and the SSH keys that may sign in.
 *
 * Rendered as `#cloud-config` followed by one JSON object: JSON is valid YAML, so no string of a
 * caller can break out of its place. No raw user-data is ever accepted. Free of zod, so that the
 * command line can check a key without loading it.
 */

/** The `initialization` block of a create body. */
export interface Initialization {
  readonly username?: string | undefined;
  readonly sshAuthorizedKeys?: readonly string[] | undefined;
}

/** Greatest number of keys of one machine. */
export const maxSshKeys = 32;
/** Greatest size of one key, bytes. */
export const maxSshKeyBytes = 16_384;
/** A login name (useradd's portable form). */
export const usernamePattern = /^[a-z_][a-z0-9_-]{0,31}$/;

const keyTypes =
  /^(ssh-ed25519|ssh-rsa|ecdsa-sha2-[a-z0-9-]+|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-[a-z0-9@.-]+)$/;
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Why a public key is not accepted, or `undefined` when it is. */
export function sshKeyProblem(key: string): string | undefined {
  if (Buffer.byteLength(key, "utf8") > maxSshKeyBytes) return `must be at most ${maxSshKeyBytes} bytes`;
  if (/[\r\n]/.test(key)) return "must be one line";
  const [type = "", blob] = key.trim().split(/\s+/);
  if (blob === undefined) return "must hold a type and a key";
  if (!keyTypes.test(type)) return "must be of type ssh-ed25519, ssh-rsa, ecdsa-sha2-* or sk-*";
  if (blob === "" || !base64.test(blob)) return "must hold a padded base64 key";
  return undefined;
}

/** Every rule of {@link Initialization} that does not hold, by path. */
export function initializationProblems(value: Initialization): string[] {
  const problems: string[] = [];
  if (value.username && !usernamePattern.test(value.username)) {
    problems.push(`initialization.username must match ${usernamePattern.source}`);
  }
  const keys = value.sshAuthorizedKeys ?? [];
  if (keys.length > maxSshKeys) {
    problems.push(`initialization.sshAuthorizedKeys must have at most ${maxSshKeys} entries`);
  } else {
    keys.forEach((key, index) => {
      const problem = sshKeyProblem(key);
      if (problem) problems.push(`initialization.sshAuthorizedKeys[${index}] ${problem}`);
    });
  }
  return problems;
}

/** Who the rendered configuration is for. */
export interface CloudConfigSubject {
  readonly hostname: string;
  /** The image's user, when the caller names none. */
  readonly defaultUser: string | undefined;
  readonly initialization: Initialization | undefined;
}

/** The cloud-config text of a Linux guest. Throws a `RangeError` when there is no valid user at all. */
export function renderCloudConfig(subject: CloudConfigSubject): string {
  const name = subject.initialization?.username || subject.defaultUser || "";
  if (!usernamePattern.test(name)) throw new RangeError(`no valid user for ${subject.hostname}`);
  const keys = subject.initialization?.sshAuthorizedKeys ?? [];
  const config = {
    hostname: subject.hostname,
    manage_etc_hosts: true,
    ssh_pwauth: false,
    disable_root: true,
    users: [
      {
        name,
        lock_passwd: true,
        shell: "/bin/bash",
        sudo: "ALL=(ALL) NOPASSWD:ALL",
        ...(keys.length > 0 ? { ssh_authorized_keys: keys } : {}),
      },
    ],
    growpart: { mode: "auto", devices: ["/"], ignore_growroot_disabled: false },
    resize_rootfs: true,
    packages: ["qemu-guest-agent"],
    runcmd: [["systemctl", "enable", "--now", "qemu-guest-agent"]],
  };
  return `#cloud-config\n${JSON.stringify(config, null, 2)}\n`;
}

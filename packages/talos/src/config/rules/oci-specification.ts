/**
 * The parts of an OCI runtime specification whose types are checked when a configuration overrides them.
 */
import { bool, int, list, map, misfits, object, text, uint, type Shape } from "../shape.ts";

const user = object({
  uid: uint,
  gid: uint,
  umask: uint,
  additionalGids: list(uint),
  username: text,
});
const process: Shape = object({
  terminal: bool,
  user,
  args: list(text),
  env: list(text),
  cwd: text,
  rlimits: list(object({ type: text, hard: uint, soft: uint })),
  noNewPrivileges: bool,
  apparmorProfile: text,
  oomScoreAdj: int,
  selinuxLabel: text,
});
const specification: Shape = object({
  ociVersion: text,
  hostname: text,
  domainname: text,
  annotations: map(text),
  process,
});

/** Whether the known parts have the right types. Unknown parts are containerd's to judge. */
export function isOciSpecification(value: unknown): boolean {
  return misfits(value, specification, 0).every(({ problem }) => problem === "unknown key");
}

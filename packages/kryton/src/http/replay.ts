/**
 * The answer to a repeated request whose change was made but whose first answer was lost in a crash:
 * the machine or snapshot as it is now, with the status the first answer would have had.
 */
import type { AcceptedChange } from "../service/asking.ts";
import type { MachineService } from "../service/machines.ts";
import type { SnapshotService } from "../service/snapshots.ts";
import type { Reply } from "./reply.ts";
import type { Route } from "./route.ts";

/** See the module comment. What was removed since is `NOT_FOUND`, as for any request. */
export async function replayReply(
  machines: MachineService,
  snapshots: SnapshotService,
  route: Route,
  project: string,
  { machineId, snapshotId }: AcceptedChange,
): Promise<Reply> {
  const status = Number(Object.keys(route.answers).find((code) => code.startsWith("2")) ?? 200);
  if (status === 204) return { status };
  const json =
    snapshotId === undefined
      ? await machines.get(project, machineId)
      : await snapshots.get(project, machineId, snapshotId);
  return { status, json };
}

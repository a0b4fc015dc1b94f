/**
 * The answer to a repeated request whose change was made but whose first answer was lost in a crash:
 * the machine as it is now, with the status the first answer would have had.
 */
import { isCoded } from "@kontinuum/std";
import type { MachineService } from "../service/machines.ts";
import type { Reply } from "./reply.ts";
import type { Route } from "./route.ts";

/** See the module comment. */
export async function replayReply(
  machines: MachineService,
  route: Route,
  project: string,
  machineId: string,
): Promise<Reply> {
  const status = Number(Object.keys(route.answers).find((code) => code.startsWith("2")) ?? 200);
  if (status === 204) return { status };
  try {
    return { status, json: await machines.get(project, machineId) };
  } catch (error) {
    if (!isCoded(error, "not_found")) throw error;
    return { status: 204 };
  }
}

/**
 * Events as messages. Their payload's type URL is Talos' own (`talos/runtime/<message>`); the usual form would not be
 * recognised by its clients.
 */
import { create, toBinary, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import {
  EventSchema,
  MachineStatusEvent_MachineStage as EventStage,
  MachineStatusEventSchema,
  PhaseEvent_Action as PhaseAction,
  PhaseEventSchema,
  SequenceEvent_Action as Action,
  SequenceEventSchema,
  TaskEvent_Action as TaskAction,
  TaskEventSchema,
  type Event,
} from "../../gen/machine/machine_pb.ts";
import type { NodeEvent } from "../node-events.ts";
import type { NodeStage } from "../node-view.ts";

const stages: Readonly<Record<NodeStage, EventStage>> = {
  off: EventStage.UNKNOWN,
  booting: EventStage.BOOTING,
  installing: EventStage.INSTALLING,
  maintenance: EventStage.MAINTENANCE,
  running: EventStage.RUNNING,
  rebooting: EventStage.REBOOTING,
  "shutting down": EventStage.SHUTTING_DOWN,
  resetting: EventStage.RESETTING,
  upgrading: EventStage.UPGRADING,
};

/** The message of an event. */
export function eventMessage({ id, actorId, happening }: NodeEvent): Event {
  const data = dataOf(happening);
  return create(EventSchema, { id, actorId, data });
}

function dataOf(happening: NodeEvent["happening"]): Payload {
  switch (happening.kind) {
    case "stage":
      return payload(MachineStatusEventSchema, {
        stage: stages[happening.stage],
        status: {
          ready: happening.unmet.length === 0,
          unmetConditions: happening.unmet.map((condition) => ({ ...condition })),
        },
      });
    case "phase":
      return payload(PhaseEventSchema, {
        phase: happening.phase,
        action: happening.action === "start" ? PhaseAction.START : PhaseAction.STOP,
      });
    case "task":
      return payload(TaskEventSchema, {
        task: happening.task,
        action: happening.action === "start" ? TaskAction.START : TaskAction.STOP,
      });
    case "sequence":
      return payload(SequenceEventSchema, {
        sequence: happening.sequence,
        action: happening.action === "start" ? Action.START : Action.STOP,
        ...(happening.error === undefined ? {} : { error: { message: happening.error } }),
      });
  }
}

interface Payload {
  readonly typeUrl: string;
  readonly value: Uint8Array<ArrayBuffer>;
}

function payload<D extends DescMessage>(schema: D, value: MessageInitShape<D>): Payload {
  return { typeUrl: `talos/runtime/${schema.typeName}`, value: toBinary(schema, create(schema, value)) };
}

/**
 * What callers are told when a verb cannot be done.
 */
import { KrytonError, krytonErrors, type KrytonCode } from "../model/errors.ts";
import type { Machine } from "../model/machine.ts";
import type { End } from "../operations/waiters.ts";

/** Throws what an operation failed with, when it did so in time. */
export function throwIfFailed(end: End | undefined): void {
  const operation = end?.operation;
  if (operation?.state === "cancelled") {
    throw new KrytonError("CONFLICT", `${operation.kind} of machine ${operation.machineId} was cancelled`);
  }
  if (operation?.state !== "failed" || !operation.error) return;
  const { code, message } = operation.error;
  throw new KrytonError(isCode(code) ? code : "INTERNAL", message);
}

function isCode(code: string): code is KrytonCode {
  return Object.hasOwn(krytonErrors, code);
}

/** 404: the project has no machine of that id. */
export function notFound(project: string, id: string): KrytonError {
  return new KrytonError("NOT_FOUND", `no machine ${id} in project ${project}`, {
    hint: "Check the id and the project.",
  });
}

/** 409: the machine is on its way out. */
export function goneSoon(machine: Machine): KrytonError {
  return new KrytonError("CONFLICT", `machine ${machine.id} is being deleted`);
}

/** 409: the project has a machine of that name. */
export function nameTaken(project: string, name: string): KrytonError {
  return new KrytonError("CONFLICT", `a machine called ${name} is already in project ${project}`, {
    hint: "Pick another name.",
  });
}

/** 501: the provider cannot do it. */
export function unsupported(what: string): KrytonError {
  return new KrytonError("UNSUPPORTED", `this provider cannot ${what}`, {
    hint: "GET /api/v1/capabilities lists what it can do.",
  });
}

/** 409: too many callers at once. */
export function busy(what: string): KrytonError {
  return new KrytonError("CONFLICT", `${what} is changed by too many callers at once`, {
    hint: "Try again.",
    retryAfterMs: 1_000,
  });
}

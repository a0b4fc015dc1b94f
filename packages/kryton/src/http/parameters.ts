/**
 * Query parameters that several routes share: their reading and their documentation.
 */
import { z } from "zod";
import { machineStates } from "../model/machine.ts";
import { invalidRequest } from "../model/errors.ts";
import type { QueryParameter } from "./route.ts";

/** Page size without `limit`. */
export const defaultLimit = 50;
/** Largest page. */
export const maxLimit = 500;

/** `?project=` */
export const projectParameter: QueryParameter = {
  name: "project",
  description: "Project of the machine. Default: the default project.",
  schema: z.string(),
};

/** `?limit=` */
export const limitParameter: QueryParameter = {
  name: "limit",
  description: "Items of a page, 1 to 500; larger numbers mean 500, anything else means 50.",
  schema: z.int().default(defaultLimit),
};

/** `?cursor=` */
export const cursorParameter: QueryParameter = {
  name: "cursor",
  description: "`nextCursor` of the page before.",
  schema: z.string().meta({ pattern: "^[A-Za-z0-9_-]*$" }),
};

/** `?state=` */
export const stateParameter: QueryParameter = {
  name: "state",
  description: "Only machines in this state.",
  schema: z.enum(machineStates),
};

/** `?label=` */
export const labelParameter: QueryParameter = {
  name: "label",
  description: "Only machines with this label, `key=value` or `key`; may be repeated.",
  schema: z.string(),
};

/** The page size: clamped to the largest, the default for what is not a number of 1 or more. */
export function limitOf(query: URLSearchParams): number {
  const value = query.get("limit") ?? "";
  const limit = /^\d{1,15}$/.test(value) ? Number(value) : 0;
  return limit < 1 ? defaultLimit : Math.min(limit, maxLimit);
}

/** The id inside a cursor, or `undefined` without one. */
export function cursorOf(query: URLSearchParams): string | undefined {
  const cursor = query.get("cursor");
  if (cursor === null || cursor === "") return undefined;
  const id = Buffer.from(cursor, "base64url").toString("utf8");
  if (!/^[A-Za-z0-9_-]+$/.test(cursor) || !/^[\x21-\x7e]{1,128}$/.test(id) || id.includes("/")) {
    throw invalidRequest("cursor is not one that this API gave out");
  }
  return id;
}

/** The cursor that continues after `id`. */
export function cursorAfter(id: string): string {
  return Buffer.from(id, "utf8").toString("base64url");
}

/** Label filters. */
export function labelsOf(query: URLSearchParams): { key: string; value: string | undefined }[] {
  return query.getAll("label").map((text) => {
    const at = text.indexOf("=");
    return at < 0 ? { key: text, value: undefined } : { key: text.slice(0, at), value: text.slice(at + 1) };
  });
}

/** A boolean of the query; absent is false. Anything but `true` and `false` is `INVALID_REQUEST`. */
export function flagOf(query: URLSearchParams, name: string): boolean {
  const value = query.get(name) || "false";
  if (value !== "true" && value !== "false") throw invalidRequest(`${name} must be true or false`);
  return value === "true";
}

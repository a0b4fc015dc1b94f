/**
 * Page tokens: which snapshot a paged list reads and where its next page starts. Opaque to clients, not secret, and
 * never trusted: a token can only name a revision and a key below the list's own prefix.
 */
import { isObject } from "@kontinuum/std";
import { badRequest } from "../status/status.ts";

/** The contents of a token. */
export interface ContinueToken {
  /** Revision of the first page; -1: continue at the newest revision. */
  readonly revision: number;
  /** First key of the next page, relative to the list's prefix. */
  readonly start: string;
}

const maxTokenLength = 4096;

/** Writes a token. */
export function encodeContinue({ revision, start }: ContinueToken): string {
  const text = JSON.stringify({ v: "meta.k8s.io/v1", rv: revision, start: `${start}\u0000` });
  return Buffer.from(text).toString("base64url");
}

/** Reads a token. Fails with 400. */
export function decodeContinue(token: string): ContinueToken {
  const refuse = (why: string): never => {
    throw badRequest(`continue key is not valid: ${why}`);
  };
  if (token.length > maxTokenLength || !/^[A-Za-z0-9_-]+=*$/.test(token))
    return refuse("illegal base64 data");
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(token, "base64url").toString("utf8"));
  } catch {
    return refuse("not a token of this server");
  }
  if (!isObject(value) || value["v"] !== "meta.k8s.io/v1")
    return refuse("server does not recognize this encoded version");
  const { rv, start } = value;
  if (typeof rv !== "number" || !Number.isSafeInteger(rv) || (rv < 1 && rv !== -1))
    return refuse("incorrect encoded start resourceVersion");
  if (typeof start !== "string" || start.length < 2 || start.includes(".."))
    return refuse("incorrect encoded start key");
  return { revision: rv, start: start.replace(/\0$/, "") };
}

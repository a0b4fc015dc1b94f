/**
 * The embedder's definitions: created or brought up to date, and served before the server says it is ready.
 */
import type { Transport } from "@kontinuum/controller";
import { CodedError, isObject, stringAt, type Edges, type JsonObject } from "@kontinuum/std";
import { metaText } from "../registry/metadata.ts";
import { call, failedWith } from "./call.ts";
import { hasCondition, type CrdLifecycle } from "./crd-lifecycle.ts";

const collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/** How long a definition may take to be established. */
const establishTimeoutMs = 10_000;
const pollMs = 10;
const maxConflicts = 10;

/** Ensures definitions one after another. Fails when one is refused or is not established in time. */
export async function ensureCrds(
  transport: Transport,
  lifecycle: CrdLifecycle,
  manifests: readonly JsonObject[],
  edges: Edges,
): Promise<void> {
  for (const manifest of manifests) {
    await ensureOne(transport, manifest);
    await established(transport, lifecycle, stringAt(manifest, "metadata", "name") ?? "", edges);
  }
}

async function ensureOne(transport: Transport, manifest: JsonObject): Promise<void> {
  const name = stringAt(manifest, "metadata", "name") ?? "";
  const path = `${collection}/${encodeURIComponent(name)}`;
  for (let round = 0; round < maxConflicts; round++) {
    let present: JsonObject;
    try {
      present = await call(transport, "GET", path);
    } catch (error) {
      if (!failedWith(error, 404)) throw error;
      try {
        await call(transport, "POST", collection, manifest);
        return;
      } catch (again) {
        if (failedWith(again, 409)) continue;
        throw again;
      }
    }
    const wanted = isObject(manifest["metadata"]) ? manifest["metadata"] : {};
    const metadata = isObject(present["metadata"]) ? present["metadata"] : {};
    const merged = {
      ...present,
      metadata: {
        ...metadata,
        labels: {
          ...(isObject(metadata["labels"]) ? metadata["labels"] : {}),
          ...(isObject(wanted["labels"]) ? wanted["labels"] : {}),
        },
        annotations: {
          ...(isObject(metadata["annotations"]) ? metadata["annotations"] : {}),
          ...(isObject(wanted["annotations"]) ? wanted["annotations"] : {}),
        },
        resourceVersion: metaText(present, "resourceVersion"),
      },
      spec: manifest["spec"],
    };
    try {
      await call(transport, "PUT", path, merged);
      return;
    } catch (error) {
      if (!failedWith(error, 409)) throw error;
    }
  }
  throw new CodedError("conflict", `the definition ${name} kept changing while it was brought up to date`);
}

async function established(
  transport: Transport,
  lifecycle: CrdLifecycle,
  name: string,
  { clock }: Edges,
): Promise<void> {
  const until = clock.monotonic() + establishTimeoutMs;
  while (clock.monotonic() < until) {
    const present = await call(transport, "GET", `${collection}/${encodeURIComponent(name)}`);
    if (hasCondition(present, "Established") && lifecycle.isServed(name)) return;
    await clock.sleep(pollMs);
  }
  throw new CodedError(
    "deadline_exceeded",
    `the definition ${name} was not established within ${establishTimeoutMs} ms: look at its conditions`,
  );
}

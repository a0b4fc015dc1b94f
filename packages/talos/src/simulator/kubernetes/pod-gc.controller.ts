/**
 * Pod garbage collection: pods of a Node that is gone are deleted without waiting, because nobody is left who could
 * stop them. Whoever made them makes them anew elsewhere.
 */
import {
  defineController,
  parseKey,
  watchOf,
  type CachedClient,
  type DefinedController,
} from "@kontinuum/controller";
import { nodes, pods, type Pod } from "./kinds.ts";

/** A node may be registered a moment after its first pod was bound to it. */
const graceMs = 2_000;

/** See the module's comment. The controller's keys are names of nodes. */
export function podGarbageController(): DefinedController {
  return defineController({
    name: "pod-garbage",
    watches: [watchOf(nodes), watchOf(pods, { map: ({ spec }) => (spec.nodeName ? [spec.nodeName] : []) })],
    async reconcile(name, { client, edges }) {
      if (await client.find(nodes, parseKey(name))) return undefined;
      const orphans = await podsOf(client, name);
      const fresh = orphans.filter((pod) => ageOf(pod, edges.clock.now()) < graceMs);
      for (const pod of orphans) {
        if (fresh.includes(pod)) continue;
        await client.deleteIfExists(pods, pod.metadata, { gracePeriodSeconds: 0 });
      }
      return fresh.length > 0 ? { requeueAfterMs: graceMs } : undefined;
    },
  });
}

async function podsOf(client: CachedClient, node: string): Promise<Pod[]> {
  return (await client.list(pods)).items.filter(({ spec }) => spec.nodeName === node);
}

const ageOf = ({ metadata }: Pod, nowMs: number): number =>
  nowMs - Date.parse(metadata.creationTimestamp ?? "");

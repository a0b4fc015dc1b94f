/**
 * The thread that reads large YAML texts, so that the event loop everybody shares never waits for one of them.
 */
import { parentPort } from "node:worker_threads";
import { parseYaml } from "./yaml.ts";

parentPort?.on("message", ({ id, text }: { readonly id: number; readonly text: string }) => {
  try {
    parentPort?.postMessage({ id, body: parseYaml(text) });
  } catch (error) {
    parentPort?.postMessage({ id, error: error instanceof Error ? error.message : "unreadable YAML" });
  }
});

/**
 * How definitions convert their objects: in this process where the embedder said so, else through their webhook.
 */
import { at, isObject, stringAt, type JsonObject, type Random } from "@kontinuum/std";
import type { CrdConversion } from "../crd/index.ts";
import { stringifyJson } from "../json/json.ts";
import type { Outbound } from "../outbound/outbound.ts";

/** Longest conversion. */
const timeoutMs = 30_000;

/** Answers a ConversionReview in this process. */
export type Converter = (review: JsonObject) => JsonObject;

/** Makes the conversion of a definition. */
export function conversionOf(
  manifest: JsonObject,
  converters: Readonly<Record<string, Converter>>,
  outbound: Outbound,
  random: Random,
): CrdConversion {
  const newUid = (): string => random.uuid();
  const convert = converters[stringAt(manifest, "metadata", "name") ?? ""];
  if (convert) return { call: (review) => Promise.resolve(convert(review)), newUid };
  const config = at(manifest, "spec", "conversion", "webhook", "clientConfig");
  return {
    newUid,
    async call(review) {
      const target = await outbound.targets.ofClientConfig(isObject(config) ? config : {});
      return outbound.client.call(target, { body: stringifyJson(review), timeoutMs });
    },
  };
}

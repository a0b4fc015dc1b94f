/**
 * Signatures of deliveries.
 *
 * `X-Kryton-Signature` covers the exact body, as clients of the original check it.
 * `X-Kryton-Signature-Timestamped` covers the time too, so that a delivery cannot be replayed later.
 */
import { createHmac } from "node:crypto";

/** Headers that prove where a body comes from; none without a secret. */
export function signatureHeaders(
  body: Uint8Array,
  secret: string,
  epochSeconds: number,
): Record<string, string> {
  if (secret === "") return {};
  const plain = createHmac("sha256", secret).update(body).digest("hex");
  const timed = createHmac("sha256", secret).update(`${epochSeconds}.`).update(body).digest("hex");
  return {
    "X-Kryton-Signature": `sha256=${plain}`,
    "X-Kryton-Signature-Timestamped": `t=${epochSeconds},sha256=${timed}`,
  };
}

/**
 * The key that seals sessions: one Secret for all replicas, made by whoever needs it first.
 *
 * Deleting the Secret signs everybody out.
 */
import { secrets, type Client } from "@kontinuum/controller";
import { CodedError, isCoded, type Random } from "@kontinuum/std";
import { systemNamespace } from "../kinds/index.ts";
import { sessionKeyBytes } from "./session-cookie.ts";

/** Name of the Secret in the system namespace. */
export const sessionKeySecretName = "kontinuum-console-session-key";
const field = "key";

/** The key, made when missing. `client` acts as the server itself. */
export async function sessionKey(client: Client, random: Random): Promise<Uint8Array> {
  const ref = { namespace: systemNamespace, name: sessionKeySecretName };
  const present = await client.find(secrets, ref);
  const encoded = present?.data?.[field];
  if (encoded !== undefined) {
    const key = Buffer.from(encoded, "base64");
    if (key.length !== sessionKeyBytes) {
      throw new CodedError(
        "failed_precondition",
        `Secret ${systemNamespace}/${sessionKeySecretName} holds no key of ${sessionKeyBytes} bytes: delete it`,
      );
    }
    return key;
  }
  const key = random.bytes(sessionKeyBytes);
  try {
    await client.create(secrets, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: ref,
      type: "Opaque",
      data: { [field]: Buffer.from(key).toString("base64") },
    });
    return key;
  } catch (error) {
    // Another replica was first: its key counts.
    if (isCoded(error, "already_exists")) return sessionKey(client, random);
    throw error;
  }
}

/**
 * Where a node finds its key management service (Talos, `kms.endpoint`): a URL whose scheme decides
 * about TLS. `grpc://` or none is plain HTTP/2, anything else TLS.
 */
import { CodedError } from "@kontinuum/std";

/** Port of Talos' own reference implementation. */
export const kmsPort = 4050;

/** Host, port and security of an endpoint. Fails with `invalid_argument`. */
export function parseKmsEndpoint(endpoint: string): {
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
} {
  const pattern = /^(?:([a-z][a-z0-9+.-]*):\/\/)?(\[[0-9a-fA-F:.]+\]|[^\s/:@[\]]+)(?::(\d{1,5}))?\/?$/;
  const match = pattern.exec(endpoint);
  const [, scheme, host = "", digits] = match ?? [];
  const secure = scheme !== undefined && scheme !== "grpc";
  const port = digits === undefined ? (secure ? 443 : kmsPort) : Number(digits);
  if (!match || port < 1 || port > 65_535) {
    throw new CodedError(
      "invalid_argument",
      `${JSON.stringify(endpoint.slice(0, 256))} is not a KMS endpoint such as https://kms.example:4050`,
    );
  }
  return { host: host.replace(/^\[|\]$/g, ""), port, secure };
}

/**
 * Which cluster this server is connected to, from its variables. Nothing is guessed: without
 * `KRYTON_KUBERNETES_ENDPOINT` or `KRYTON_KUBECONFIG` there is no cluster.
 */
import { CodedError } from "@kontinuum/std";
import { flag, text, type Environment } from "../config/values.ts";
import { readKubeconfigFile, readText, readToken, serverUrl, type ClusterAccess } from "./kubeconfig.ts";

/** The access that is configured, or `undefined`. Fails with `invalid_argument`, naming the variable. */
export async function readClusterAccess(env: Environment): Promise<ClusterAccess | undefined> {
  const endpoint = text(env, "KRYTON_KUBERNETES_ENDPOINT");
  const kubeconfig = text(env, "KRYTON_KUBECONFIG");
  const insecure = flag(env, "KRYTON_KUBERNETES_INSECURE_SKIP_VERIFY", false);
  if (endpoint === "") {
    if (kubeconfig === "") return undefined;
    const access = await readKubeconfigFile(kubeconfig);
    return insecure ? { ...access, insecure } : access;
  }
  const file = async (name: string): Promise<string | undefined> => {
    const path = text(env, name);
    return path === "" ? undefined : readText(path, (why) => refuse(name, why));
  };
  const cert = await file("KRYTON_KUBERNETES_CLIENT_CERT_FILE");
  const key = await file("KRYTON_KUBERNETES_CLIENT_KEY_FILE");
  if ((cert === undefined) !== (key === undefined)) {
    throw refuse(
      "KRYTON_KUBERNETES_CLIENT_CERT_FILE",
      "KRYTON_KUBERNETES_CLIENT_KEY_FILE must be set with it, and it with that",
    );
  }
  const ca = await file("KRYTON_KUBERNETES_CA_FILE");
  const fixed = text(env, "KRYTON_KUBERNETES_BEARER_TOKEN");
  const tokenFile = text(env, "KRYTON_KUBERNETES_TOKEN_FILE");
  const token =
    fixed !== "" ? () => Promise.resolve(fixed) : tokenFile !== "" ? () => readToken(tokenFile) : undefined;
  return {
    server: serverUrl(endpoint, (why) => refuse("KRYTON_KUBERNETES_ENDPOINT", why)),
    insecure,
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(token === undefined ? {} : { token }),
  };
}

function refuse(name: string, why: string): CodedError {
  return new CodedError("invalid_argument", `${name}: ${why}`);
}

/**
 * The environment of a zone's own server: which variable it gets, with which value. Pure.
 *
 * The list is explicit (the column `zone` of the variables' table): whatever is not on it stays on the hub.
 */
import type { Config } from "../../config/config.ts";
import { variables, type VariableName } from "../../config/variables.ts";
import { identityMountPath, type Zone } from "../../kinds/index.ts";

/** Where the zone answers, or `undefined` without a domain. */
export function zoneHost({ spec }: Zone): string | undefined {
  return spec.domain ? `${spec.zone}.${spec.region}.${spec.domain}` : undefined;
}

/** Variables of the zone's server: `secret` ones and the others. */
export interface ZoneEnvironment {
  readonly secret: Readonly<Record<string, string>>;
  readonly plain: Readonly<Record<string, string>>;
}

/** The environment for `zone` of a hub with `config`. */
export function zoneEnvironment(config: Config, zone: Zone): ZoneEnvironment {
  const host = zoneHost(zone);
  const computed: Partial<Record<VariableName, string>> = {
    KONTINUUM_SERVER_ADDR: ":8080",
    KONTINUUM_SERVER_REGION: zone.spec.region,
    KONTINUUM_SERVER_ZONE: zone.spec.zone,
    KONTINUUM_SERVER_STORAGE: `grpc://${zone.metadata.name}@${config.grpc.endpoint}`,
    // Named, it is all the zone trusts; the hub's own authority is trusted beside the system's.
    ...(config.grpc.caFile === "" ? {} : { KONTINUUM_SERVER_GRPC_CA_FILE: `${identityMountPath}/ca.crt` }),
    ...(host === undefined ? {} : { KONTINUUM_OIDC_REDIRECT_URL: `https://${host}/app` }),
  };
  const travelling = variables.filter((variable) => variable.zone !== "never");
  const valuesOf = (secret: boolean): Record<string, string> =>
    Object.fromEntries(
      travelling
        .filter((variable) => "secret" in variable === secret)
        .flatMap(({ name, zone: rule }) => {
          const value = computed[name] ?? (rule === "optional" ? undefined : config.values[name]);
          return value === undefined ? [] : [[name, value] as const];
        }),
    );
  return { secret: valuesOf(true), plain: valuesOf(false) };
}

/**
 * A process's own entry in the registry: its Kontinuum object and the Secret with its storage settings.
 *
 * Each beat states everything again, so a beat repairs whatever was deleted or changed. After `deregister`
 * no beat writes any more. Two hosts with one name would write over each other in turns; each entry
 * carries the id of the process that wrote it, and who finds another's id where its own stood takes a new
 * name and leaves the entry to the other.
 */
import {
  formatTime,
  secrets,
  secretText,
  setControllerReference,
  type Client,
  type Secret,
} from "@kontinuum/controller";
import { isCoded, nameSuffix, type Edges } from "@kontinuum/std";
import type { Config } from "../../config/config.ts";
import { redactConnectionString } from "../../config/redact.ts";
import {
  annotations,
  kontinuumKind,
  processSecretName,
  systemNamespace,
  type Kontinuum,
  type KontinuumConfigStatus,
  type KontinuumStatus,
} from "../../kinds/index.ts";
import { ensureNamespace } from "../ensure.ts";

/** Who registers. */
export interface ProcessIdentity {
  /** Name to register under; may change once, see the module's comment. */
  readonly name: string;
  /** Unique to this start of the process. */
  readonly id: string;
  /** Version of the program. */
  readonly version: string;
}

const storageKey = "KONTINUUM_SERVER_STORAGE";

/** Keeps one process registered. */
export class Registration {
  readonly #config: Config;
  readonly #edges: Edges;
  readonly #id: string;
  readonly #version: string;
  readonly #base: string;
  #name: string;
  #written = false;
  #ended = false;

  constructor(identity: ProcessIdentity, config: Config, edges: Edges) {
    this.#name = identity.name;
    this.#base = identity.name;
    this.#id = identity.id;
    this.#version = identity.version;
    this.#config = config;
    this.#edges = edges;
  }

  /** The name in use now. */
  get name(): string {
    return this.#name;
  }

  /** Whether the process is on its way out. */
  get ended(): boolean {
    return this.#ended;
  }

  /** States the process in the registry: creates or refreshes both objects. */
  async beat(client: Client): Promise<void> {
    if (this.#ended) return;
    const present = await client.find(kontinuumKind.resource, this.#ref());
    if (present && this.#written && present.metadata.annotations?.[annotations.processId] !== this.#id) {
      this.#name = `${this.#base}-${nameSuffix(this.#edges.random)}`;
      this.#written = false;
      this.#edges.log.warn("another process uses this name; registering under a new one", {
        name: this.#name,
      });
      return this.beat(client);
    }
    const entry = present ? await this.#adopt(client, present) : await this.#create(client);
    this.#written = true;
    await this.#ensureSecret(client, entry);
    if (this.#ended) return;
    await client.updateStatus(kontinuumKind.resource, { ...entry, status: this.#status() });
  }

  /** Leaves the registry for good. May be called again, and before anything was registered. */
  async deregister(client: Client): Promise<void> {
    this.#ended = true;
    await client.deleteIfExists(kontinuumKind.resource, this.#ref());
  }

  #ref(): { namespace: string; name: string } {
    return { namespace: systemNamespace, name: this.#name };
  }

  async #create(client: Client): Promise<Kontinuum> {
    const { placement } = this.#config;
    await ensureNamespace(client, systemNamespace);
    try {
      return await client.create(kontinuumKind.resource, {
        apiVersion: "kontinuum.sh/v1alpha2",
        kind: "Kontinuum",
        metadata: { ...this.#ref(), annotations: { [annotations.processId]: this.#id } },
        spec: { ...placement },
      });
    } catch (error) {
      if (!isCoded(error, "already_exists")) throw error;
      return this.#adopt(client, await client.get(kontinuumKind.resource, this.#ref()));
    }
  }

  async #adopt(client: Client, present: Kontinuum): Promise<Kontinuum> {
    const { region, zone } = this.#config.placement ?? { region: undefined, zone: undefined };
    const same =
      present.metadata.annotations?.[annotations.processId] === this.#id &&
      (present.spec.region ?? "") === (region ?? "") &&
      (present.spec.zone ?? "") === (zone ?? "");
    if (same) return present;
    return client.update(kontinuumKind.resource, {
      ...present,
      metadata: {
        ...present.metadata,
        annotations: { ...present.metadata.annotations, [annotations.processId]: this.#id },
      },
      spec: { ...this.#config.placement },
    });
  }

  /** The Secret is the hub's to keep: a zone may not write Secrets, and its storage is no secret of the hub's. */
  async #ensureSecret(client: Client, entry: Kontinuum): Promise<void> {
    if (this.#config.placement) return;
    const storage = redactConnectionString(this.#config.values.KONTINUUM_SERVER_STORAGE);
    const name = processSecretName(this.#name);
    const present = await client.find(secrets, { namespace: systemNamespace, name });
    const secret: Secret = present ?? {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { namespace: systemNamespace, name },
      type: "Opaque",
    };
    // A former entry of the same name left it behind: its owner is gone, the new one takes over.
    const owner = secret.metadata.ownerReferences?.[0];
    if (owner && owner.uid !== entry.metadata.uid) secret.metadata.ownerReferences = [];
    const owned = setControllerReference(secret, entry, kontinuumKind.resource);
    if (present && !owned && secretText(present, storageKey) === storage) return;
    secret.data = { [storageKey]: Buffer.from(storage).toString("base64") };
    if (present) await client.update(secrets, secret);
    else await client.create(secrets, secret);
  }

  #status(): KontinuumStatus {
    return {
      role: this.#config.placement ? "Worker" : "ControlPlane",
      lastHeartbeatTime: formatTime(this.#edges.clock.now()),
      version: this.#version,
      ...(this.#config.placement
        ? {}
        : { secretRef: { name: processSecretName(this.#name), namespace: systemNamespace } }),
      config: publishedConfig(this.#config),
    };
  }
}

/** The configuration as it is shown to everybody: no secret, no credential. */
export function publishedConfig({ values, oidc }: Config): KontinuumConfigStatus {
  return {
    server: {
      addr: values.KONTINUUM_SERVER_ADDR,
      storage: redactConnectionString(values.KONTINUUM_SERVER_STORAGE),
      region: values.KONTINUUM_SERVER_REGION,
      zone: values.KONTINUUM_SERVER_ZONE,
      dns: { domain: values.KONTINUUM_SERVER_DNS_DOMAIN },
      grpc: {
        endpoint: values.KONTINUUM_SERVER_GRPC_ENDPOINT,
        insecureTLSSkipVerify: values.KONTINUUM_SERVER_GRPC_INSECURE_TLS_SKIP_VERIFY,
      },
    },
    log: { level: values.KONTINUUM_LOG_LEVEL, format: values.KONTINUUM_LOG_FORMAT },
    oidc: {
      enabled: oidc !== undefined,
      issuerURL: values.KONTINUUM_OIDC_ISSUER_URL,
      clientID: values.KONTINUUM_OIDC_CLIENT_ID,
      redirectURL: values.KONTINUUM_OIDC_REDIRECT_URL,
      adminGroups: values.KONTINUUM_OIDC_ADMIN_GROUPS,
    },
    insecureAllowAnonymous: values.KONTINUUM_INSECURE_ALLOW_ANONYMOUS,
    acme: { email: values.KONTINUUM_ACME_EMAIL, server: values.KONTINUUM_ACME_SERVER },
  };
}

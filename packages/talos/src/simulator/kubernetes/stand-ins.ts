/**
 * Stand-ins for controllers that charts would bring and that the simulation does not run: certificates
 * (cert-manager), gateways (Gateway API), load balancers.
 *
 * Each says in its messages that it is a stand-in. One starts when the definition of its kind is established, so
 * a cluster without those charts has none of them.
 */
import {
  defineController,
  isConditionTrue,
  isDeleting,
  parseKey,
  secrets,
  services,
  setCondition,
  customResourceDefinitions,
  watchOf,
  type Condition,
  type DefinedController,
  type Manager,
  type Resource,
} from "@kontinuum/controller";
import { at, isCoded, stringAt, type Edges, type JsonObject } from "@kontinuum/std";
import { generateAuthority, issueCertificate, type CertificateAndKey } from "../../pki/certificates.ts";
import { customKind, type CustomObject } from "./kinds.ts";

const note = "by the simulator's stand-in";

/** What a stand-in may use. */
interface StandInContext {
  readonly edges: Edges;
  /** An address of the cluster, for gateways and load balancers. */
  readonly address: () => string;
  readonly authority: () => Promise<CertificateAndKey>;
}

interface StandIn {
  readonly definition: string;
  readonly kind: Resource<CustomObject>;
  /** The status to report; `undefined` leaves the object alone. */
  readonly status: (object: CustomObject, context: StandInContext) => JsonObject | undefined;
}

function condition(
  object: CustomObject,
  type: string,
  reason: string,
  message: string,
  edges: Edges,
): Condition[] {
  const present = at(object.status, "conditions");
  const all: Condition[] = Array.isArray(present) ? present.filter(isCondition) : [];
  const generation = object.metadata.generation;
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  setCondition(all, { type, status: "True", reason, message, ...observed }, edges.clock);
  return all;
}

function isCondition(value: unknown): value is Condition {
  return ["type", "status", "reason", "message", "lastTransitionTime"].every(
    (name) => stringAt(value, name) !== undefined,
  );
}

function both(object: CustomObject, first: string, second: string, edges: Edges): Condition[] {
  const all = condition(object, first, first, `${first} ${note}`, edges);
  return condition({ ...object, status: { conditions: all } }, second, second, `${second} ${note}`, edges);
}

const gateway = "gateway.networking.k8s.io";

const standIns: readonly StandIn[] = [
  {
    definition: "clusterissuers.cert-manager.io",
    kind: clusterScoped(customKind("cert-manager.io", "v1", "ClusterIssuer", "clusterissuers")),
    status: (issuer, { edges }) => ({
      conditions: condition(issuer, "Ready", "IsReady", `Ready ${note}`, edges),
    }),
  },
  {
    definition: "issuers.cert-manager.io",
    kind: customKind("cert-manager.io", "v1", "Issuer", "issuers"),
    status: (issuer, { edges }) => ({
      conditions: condition(issuer, "Ready", "IsReady", `Ready ${note}`, edges),
    }),
  },
  {
    definition: "certificates.cert-manager.io",
    kind: customKind("cert-manager.io", "v1", "Certificate", "certificates"),
    status: (certificate, { edges }) => ({
      conditions: condition(
        certificate,
        "Ready",
        "Ready",
        `Certificate is up to date and has not expired (issued ${note})`,
        edges,
      ),
      revision: 1,
    }),
  },
  {
    definition: `gatewayclasses.${gateway}`,
    kind: clusterScoped(customKind(gateway, "v1", "GatewayClass", "gatewayclasses")),
    status: (object, { edges }) => ({
      conditions: condition(object, "Accepted", "Accepted", `Accepted ${note}`, edges),
    }),
  },
  {
    definition: `gateways.${gateway}`,
    kind: customKind(gateway, "v1", "Gateway", "gateways"),
    status: (object, { edges, address }) => {
      const conditions = both(object, "Accepted", "Programmed", edges);
      const listeners = at(object.spec, "listeners");
      return {
        conditions,
        addresses: [{ type: "IPAddress", value: address() }],
        listeners: (Array.isArray(listeners) ? listeners : []).map((listener) => ({
          name: stringAt(listener, "name") ?? "",
          attachedRoutes: 0,
          supportedKinds: [{ group: gateway, kind: "HTTPRoute" }],
          conditions,
        })),
      };
    },
  },
  {
    definition: `httproutes.${gateway}`,
    kind: customKind(gateway, "v1", "HTTPRoute", "httproutes"),
    status: (route, { edges }) => {
      const parents = at(route.spec, "parentRefs");
      const present = at(route.status, "parents", 0);
      const before = { ...route, status: { conditions: at(present, "conditions") } };
      const conditions = both(before, "Accepted", "ResolvedRefs", edges);
      return {
        parents: (Array.isArray(parents) ? parents : []).map((parentRef) => ({
          parentRef,
          controllerName: "simulator.kontinuum.sh/gateway-stand-in",
          conditions,
        })),
      };
    },
  },
];

function clusterScoped(kind: Resource<CustomObject>): Resource<CustomObject> {
  return { ...kind, namespaced: false };
}

/** Starts a stand-in for each definition that appears, in the given manager. */
export function standInStarter(manager: Manager, edges: Edges, address: () => string): DefinedController {
  const started = new Set<string>();
  let authority: Promise<CertificateAndKey> | undefined;
  const context: StandInContext = {
    edges,
    address,
    authority: () =>
      (authority ??= generateAuthority({ organization: "simulator stand-in", algorithm: "p256", edges })),
  };
  return defineController({
    name: "stand-in-starter",
    watches: [watchOf(customResourceDefinitions)],
    async reconcile(name, { client }) {
      const standIn = standIns.find(({ definition }) => definition === name);
      if (!standIn || started.has(name)) return;
      const definition = await client.find(customResourceDefinitions, { name });
      if (!definition || !isConditionTrue(definition.status?.conditions, "Established")) return;
      started.add(name);
      manager.add(standInController(standIn, context).definition);
    },
  });
}

function standInController(
  { definition, kind, status }: StandIn,
  context: StandInContext,
): DefinedController {
  return defineController({
    name: `stand-in-${definition}`,
    watches: [watchOf(kind)],
    async reconcile(key, { client }) {
      const object = await client.find(kind, parseKey(key));
      if (!object || isDeleting(object)) return;
      if (object.kind === "Certificate") await ensureCertificate(object, context, client);
      const next = { ...object.status, ...status(object, context) };
      if (JSON.stringify(next) === JSON.stringify(object.status)) return;
      await client.updateStatus(kind, { ...object, status: next });
    },
  });
}

/** The secret a Certificate asks for, with a certificate of an authority that nobody trusts. */
async function ensureCertificate(
  object: CustomObject,
  { edges, authority }: StandInContext,
  client: Manager["client"],
): Promise<void> {
  const name = stringAt(object.spec, "secretName") ?? "";
  const { namespace } = object.metadata;
  if (name === "" || (await client.live.find(secrets, { namespace, name }))) return;
  const names = at(object.spec, "dnsNames");
  const ca = await authority();
  const { crt, key } = await issueCertificate({
    ca,
    edges,
    usage: "server",
    names: Array.isArray(names) ? names.filter((entry) => typeof entry === "string") : [],
  });
  const encode = (text: string): string => Buffer.from(text, "utf8").toString("base64");
  try {
    await client.create(secrets, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
      type: "kubernetes.io/tls",
      data: { "tls.crt": encode(crt), "tls.key": encode(key), "ca.crt": encode(ca.crt) },
    });
  } catch (error) {
    if (!isCoded(error, "already_exists")) throw error;
  }
}

/** Services of type LoadBalancer get the address of a node. */
export function loadBalancerStandIn(address: () => string): DefinedController {
  return defineController({
    name: "stand-in-load-balancer",
    watches: [watchOf(services)],
    async reconcile(key, { client }) {
      const service = await client.find(services, parseKey(key));
      if (!service || isDeleting(service) || service.spec?.type !== "LoadBalancer") return;
      if ((service.status?.loadBalancer?.ingress ?? []).length > 0) return;
      const status = { ...service.status, loadBalancer: { ingress: [{ ip: address() }] } };
      await client.updateStatus(services, { ...service, status });
    },
  });
}

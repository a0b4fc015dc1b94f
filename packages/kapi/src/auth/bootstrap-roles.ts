/**
 * Roles and bindings every cluster has, as data (kubernetes.io, "Default roles and role bindings"), with the rights
 * that make sense on a server without kubelets.
 */

/** A rule as written in a role. */
export interface RoleRule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
  readonly verbs: readonly string[];
}

/** A cluster role to ensure. */
export interface BootstrapRole {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly rules?: readonly RoleRule[];
  /** Label whose roles make up this one's rules. */
  readonly aggregates?: string;
}

/** A cluster role binding to ensure, for groups. */
export interface BootstrapBinding {
  readonly name: string;
  readonly role: string;
  readonly groups: readonly string[];
}

const reading = ["get", "list", "watch"];
const writing = ["create", "delete", "deletecollection", "patch", "update"];
const prefix = "rbac.authorization.k8s.io/aggregate-to-";

/** Label selecting the roles that `admin`, `edit` and `view` are made of. */
export const aggregateTo = (name: string): string => `${prefix}${name}`;

const workloads: readonly { readonly group: string; readonly resources: readonly string[] }[] = [
  {
    group: "apps",
    resources: [
      "daemonsets",
      "deployments",
      "deployments/scale",
      "replicasets",
      "replicasets/scale",
      "statefulsets",
      "statefulsets/scale",
    ],
  },
  { group: "autoscaling", resources: ["horizontalpodautoscalers"] },
  { group: "batch", resources: ["cronjobs", "jobs"] },
  { group: "policy", resources: ["poddisruptionbudgets"] },
  { group: "networking.k8s.io", resources: ["ingresses", "networkpolicies"] },
];

const viewRules: readonly RoleRule[] = [
  {
    apiGroups: [""],
    resources: [
      "configmaps",
      "endpoints",
      "persistentvolumeclaims",
      "persistentvolumeclaims/status",
      "pods",
      "replicationcontrollers",
      "replicationcontrollers/scale",
      "serviceaccounts",
      "services",
      "services/status",
    ],
    verbs: reading,
  },
  {
    apiGroups: [""],
    resources: [
      "bindings",
      "events",
      "limitranges",
      "namespaces/status",
      "pods/log",
      "pods/status",
      "replicationcontrollers/status",
      "resourcequotas",
      "resourcequotas/status",
    ],
    verbs: reading,
  },
  { apiGroups: [""], resources: ["namespaces"], verbs: reading },
  { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: reading },
  {
    apiGroups: ["apps"],
    resources: [
      "controllerrevisions",
      "daemonsets/status",
      "deployments/status",
      "replicasets/status",
      "statefulsets/status",
    ],
    verbs: reading,
  },
  ...workloads.map(({ group, resources }) => ({ apiGroups: [group], resources, verbs: reading })),
];

const editRules: readonly RoleRule[] = [
  {
    apiGroups: [""],
    resources: ["pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "secrets", "services/proxy"],
    verbs: reading,
  },
  { apiGroups: [""], resources: ["serviceaccounts"], verbs: ["impersonate"] },
  {
    apiGroups: [""],
    resources: ["pods", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy"],
    verbs: writing,
  },
  { apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"] },
  {
    apiGroups: [""],
    resources: [
      "configmaps",
      "events",
      "persistentvolumeclaims",
      "replicationcontrollers",
      "replicationcontrollers/scale",
      "secrets",
      "serviceaccounts",
      "services",
      "services/proxy",
    ],
    verbs: writing,
  },
  { apiGroups: [""], resources: ["serviceaccounts/token"], verbs: ["create"] },
  ...workloads.map(({ group, resources }) => ({ apiGroups: [group], resources, verbs: writing })),
  { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: [...writing, ...reading] },
];

const adminRules: readonly RoleRule[] = [
  { apiGroups: ["authorization.k8s.io"], resources: ["localsubjectaccessreviews"], verbs: ["create"] },
  {
    apiGroups: ["rbac.authorization.k8s.io"],
    resources: ["rolebindings", "roles"],
    verbs: [...writing, ...reading],
  },
];

const health = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/** Cluster roles. */
export const bootstrapRoles: readonly BootstrapRole[] = [
  {
    name: "cluster-admin",
    rules: [
      { apiGroups: ["*"], resources: ["*"], verbs: ["*"] },
      { nonResourceURLs: ["*"], verbs: ["*"] },
    ],
  },
  { name: "admin", aggregates: aggregateTo("admin") },
  { name: "edit", labels: { [aggregateTo("admin")]: "true" }, aggregates: aggregateTo("edit") },
  { name: "view", labels: { [aggregateTo("edit")]: "true" }, aggregates: aggregateTo("view") },
  { name: "system:aggregate-to-admin", labels: { [aggregateTo("admin")]: "true" }, rules: adminRules },
  { name: "system:aggregate-to-edit", labels: { [aggregateTo("edit")]: "true" }, rules: editRules },
  { name: "system:aggregate-to-view", labels: { [aggregateTo("view")]: "true" }, rules: viewRules },
  {
    name: "system:discovery",
    rules: [
      {
        nonResourceURLs: ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", ...health],
        verbs: ["get"],
      },
    ],
  },
  { name: "system:public-info-viewer", rules: [{ nonResourceURLs: health, verbs: ["get"] }] },
  {
    name: "system:basic-user",
    rules: [
      {
        apiGroups: ["authorization.k8s.io"],
        resources: ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
        verbs: ["create"],
      },
      { apiGroups: ["authentication.k8s.io"], resources: ["selfsubjectreviews"], verbs: ["create"] },
    ],
  },
  {
    name: "system:auth-delegator",
    rules: [
      { apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"], verbs: ["create"] },
      { apiGroups: ["authorization.k8s.io"], resources: ["subjectaccessreviews"], verbs: ["create"] },
    ],
  },
  {
    name: "system:service-account-issuer-discovery",
    rules: [
      {
        nonResourceURLs: [
          "/.well-known/openid-configuration",
          "/.well-known/openid-configuration/",
          "/openid/v1/jwks",
          "/openid/v1/jwks/",
        ],
        verbs: ["get"],
      },
    ],
  },
  {
    name: "system:monitoring",
    rules: [
      {
        nonResourceURLs: ["/metrics", "/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*"],
        verbs: ["get"],
      },
    ],
  },
];

/** Cluster role bindings. */
export const bootstrapBindings: readonly BootstrapBinding[] = [
  { name: "cluster-admin", role: "cluster-admin", groups: ["system:masters"] },
  { name: "system:discovery", role: "system:discovery", groups: ["system:authenticated"] },
  { name: "system:basic-user", role: "system:basic-user", groups: ["system:authenticated"] },
  {
    name: "system:public-info-viewer",
    role: "system:public-info-viewer",
    groups: ["system:authenticated", "system:unauthenticated"],
  },
  {
    name: "system:service-account-issuer-discovery",
    role: "system:service-account-issuer-discovery",
    groups: ["system:serviceaccounts"],
  },
  { name: "system:monitoring", role: "system:monitoring", groups: ["system:monitoring"] },
];

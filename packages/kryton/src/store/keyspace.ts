/**
 * Where everything lives in the shared store: the one list of key prefixes of the machine API.
 *
 * All values are JSON documents. Replicas of any age read these keys, so a prefix is never reused
 * for something else. Project names are DNS labels and ids are UUIDs, so `/` never occurs inside a
 * part.
 */

const root = "/kryton";

/** Key builders, one per kind of record. A builder called without its last part gives the prefix. */
export const keys = {
  machine: (project: string, id = "") => `${root}/machines/${project}/${id}`,
  machines: `${root}/machines/`,
  /** Uniqueness of a name within a project; value is the machine's id. */
  name: (project: string, name: string) => `${root}/names/${project}/${name}`,
  /** Machines by the time they expire; the time is fixed-width, so keys sort by it. */
  expiry: (time: string, project: string, id: string) => `${root}/expiry/${time}/${project}/${id}`,
  expiries: `${root}/expiry/`,
  usage: (project: string) => `${root}/usage/${project}`,
  /** Sealed guest secrets, kept only until the provider has them. */
  secret: (machineId: string) => `${root}/secrets/${machineId}`,
  snapshot: (machineId: string, id = "") => `${root}/snapshots/${machineId}/${id}`,
  operation: (id = "") => `${root}/operations/${id}`,
  operationOf: (machineId: string, id = "") => `${root}/machine-operations/${machineId}/${id}`,
  /** Everything the operation runners watch. */
  work: `${root}/work/`,
  queue: (machineId = "", id = "") => `${root}/work/queue/${machineId === "" ? "" : `${machineId}/`}${id}`,
  claim: (machineId = "") => `${root}/work/claims/${machineId}`,
  cancel: (operationId = "") => `${root}/work/cancel/${operationId}`,
  event: (id = "") => `${root}/events/${id}`,
  leader: (name: string) => `${root}/leaders/${name}`,
  replica: (id = "") => `${root}/replicas/${id}`,
  ticketKey: (id = "") => `${root}/ticket-keys/${id}`,
  settings: `${root}/settings`,
  sealCheck: `${root}/seal-check`,
  webhook: (id = "") => `${root}/webhooks/${id}`,
  webhookCursor: (id: string) => `${root}/webhook-cursors/${id}`,
  deadLetter: (sink: string, eventId = "") => `${root}/webhook-dead/${sink}/${eventId}`,
  idempotency: (caller: string, key: string) => `${root}/idempotency/${caller}/${key}`,
  idempotencies: `${root}/idempotency/`,
  golden: (id = "") => `${root}/golden/${id}`,
  storageSetup: `${root}/storage-setup`,
  /** By the SHA-256 of the key's name. */
  apiKeyUse: (name = "") => `${root}/api-key-use/${name}`,
  demoGuest: (id = "") => `${root}/demo/guests/${id}`,
  demoAddress: (n: string) => `${root}/demo/addresses/${n}`,
  demoAddresses: `${root}/demo/addresses/`,
  demoSnapshot: (guest: string, id = "") => `${root}/demo/snapshots/${guest}/${id}`,
} as const;

/** A time as a key part: 13 digits of milliseconds, which sort by time until the year 2286. */
export function timeKey(epochMs: number): string {
  return String(Math.max(0, Math.floor(epochMs))).padStart(13, "0");
}

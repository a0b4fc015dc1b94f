/**
 * Tenants on one store: each sees and writes only its own keys, through the etcd API.
 * Run: `node packages/storage/examples/restricted-face.ts`.
 */
import { CodedError, systemEdges } from "@kontinuum/std";
import { connectEtcd, openStore, prefixRange, serveEtcd, type EtcdAccess } from "@kontinuum/storage";

const edges = systemEdges();
const store = await openStore("memory://", edges);
const server = await serveEtcd(store, {
  authorize: ({ headers }): EtcdAccess => {
    const tenant = /^Bearer (\w+)$/.exec(headers.get("authorization") ?? "")?.[1];
    if (!tenant) throw new CodedError("unauthenticated", "a token is needed");
    const own = (key: Buffer): boolean => key.toString().startsWith(`/${tenant}/`);
    return {
      canRead: (kv) => own(kv.key),
      checkWrite: ({ key }) => {
        if (!own(key)) throw new CodedError("permission_denied", `not a key of ${tenant}`);
      },
    };
  },
});

const as = (tenant: string) =>
  connectEtcd(
    { endpoints: [`127.0.0.1:${server.port}`], headers: async () => ({ authorization: `Bearer ${tenant}` }) },
    edges,
  );
const [red, blue] = [as("red"), as("blue")];
await red.txn({ success: [{ type: "put", key: "/red/x", value: "1" }] });
await blue.txn({ success: [{ type: "put", key: "/blue/x", value: "2" }] });
for (const [name, tenant] of [
  ["red", red],
  ["blue", blue],
] as const) {
  const { kvs, count } = await tenant.range(prefixRange("/"));
  console.log(`${name} sees ${count}: ${kvs.map((kv) => kv.key.toString()).join(" ")}`);
}
await red
  .txn({ success: [{ type: "delete", ...prefixRange("/blue/") }] })
  .catch((error: unknown) => console.log(String(error)));
await Promise.all([red.close(), blue.close()]);
await server.close();
await store.close();

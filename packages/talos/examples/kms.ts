/**
 * A key management service for disk encryption, and a node's use of it. Over plain HTTP/2 on
 * loopback; for nodes give `serveKms` a certificate.
 *
 *     node packages/talos/examples/kms.ts
 */
import { systemEdges } from "@kontinuum/std";
import { connectKms, kmsService, serveKms } from "@kontinuum/talos";

const edges = systemEdges();
const known = new Map([["4c4c4544-0039-5a10-8053-b2c04f334232", "127.0.0.1"]]);

const server = await serveKms({
  service: kmsService({
    // In earnest from a file or a vault, never from the disks it opens: `parseKmsRootKey`.
    rootKey: edges.random.bytes(32),
    allow: ({ nodeUuid, address }) => known.get(nodeUuid) === address,
    edges,
  }),
  port: 0,
});

const client = connectKms({ endpoint: `grpc://127.0.0.1:${server.port}`, edges });
const [uuid = ""] = known.keys();
const secret = edges.random.bytes(32);
const sealed = await client.seal(uuid, secret);
const opened = await client.unseal(uuid, sealed);
console.log(`sealed ${sealed.length} bytes, got the same back: ${Buffer.from(opened).equals(secret)}`);
const stranger = await client.unseal("00000000-0000-0000-0000-000000000001", sealed);
console.log(`a stranger got the same: ${Buffer.from(stranger).equals(secret)}`);
client.close();
await server.close();

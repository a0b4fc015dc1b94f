/**
 * Where the demo listens: the usual ports when they are free, any others when they are not.
 */
import { createHash } from "node:crypto";
import net from "node:net";

/** The port when nobody listens on it on 127.0.0.1, else one that is free now. */
export async function portNear(wanted: number): Promise<number> {
  return (await freePort(wanted)) ?? (await freePort(0)) ?? wanted;
}

function freePort(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once("error", () => resolve(undefined));
    server.listen({ host: "127.0.0.1", port }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : undefined));
    });
  });
}

/**
 * First address of the virtual rack. It depends on the demo's folder alone, so that two demos in two folders
 * don't meet, and one that resumes finds its machines where they were.
 */
export function rackAddress(folder: string): string {
  const [a = 0, b = 0] = createHash("sha256").update(folder).digest();
  return `127.${64 + (a % 62)}.${b % 100}.10`;
}

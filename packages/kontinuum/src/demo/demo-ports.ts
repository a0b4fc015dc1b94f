/**
 * Where the demo listens: the usual ports when they are free, any others when they are not.
 */
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import net from "node:net";
import path from "node:path";
import { at } from "@kontinuum/std";

/** Ports of the two APIs. */
export interface DemoPorts {
  readonly api: number;
  readonly machines: number;
}

/** The ports of the last run of this folder, or the usual ones, each replaced when somebody else has it. */
export async function demoPorts(dir: string): Promise<DemoPorts> {
  const file = path.join(dir, "ports.json");
  const last: unknown = JSON.parse(await readFile(file, "utf8").catch(() => "{}"));
  const wanted = (name: string, usual: number): number => {
    const port = at(last, name);
    return typeof port === "number" ? port : usual;
  };
  const ports = {
    api: await portNear(wanted("api", 8080)),
    machines: await portNear(wanted("machines", 8081)),
  };
  await writeFile(file, JSON.stringify(ports), { mode: 0o600 });
  return ports;
}

async function portNear(wanted: number): Promise<number> {
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

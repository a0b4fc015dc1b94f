/**
 * Writes what is made from the routes: `openapi.yaml`, the typed client, the ledger of access rules.
 *
 * Run it after a change of the routes: `node packages/kryton/src/client/generate.ts`. A test compares
 * the committed files with what would be written.
 */
import { writeFile } from "node:fs/promises";
import { systemEdges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage/client";
import { stringify } from "yaml";
import { readConfig } from "../config/config.ts";
import { openApiDocument, type OpenApiDocument } from "../http/openapi.ts";
import { allRoutes } from "../http/routes.ts";
import type { Route } from "../http/route.ts";
import { createKryton } from "../server.ts";
import { createSealer, sealKeyBytes } from "../store/sealer.ts";
import { clientSource, schemasSource } from "./emit.ts";

/** A generated file. */
export interface Generated {
  readonly url: URL;
  readonly text: string;
}

/** The routes of a server that is not started. */
export async function describedRoutes(): Promise<readonly Route[]> {
  const edges = systemEdges();
  const store = await openStore("memory://", edges);
  const sealer = createSealer(edges.random.bytes(sealKeyBytes), edges.random);
  const kryton = await createKryton({ store, edges, sealer, config: readConfig({ HOME: "/nonexistent" }) });
  const routes = allRoutes(kryton.services);
  await kryton.stop();
  await store.close();
  return routes;
}

/** Everything that is generated, as it should be on disk. */
export async function generated(): Promise<readonly Generated[]> {
  const routes = await describedRoutes();
  const document = openApiDocument(routes);
  return [
    { url: new URL("../../openapi.yaml", import.meta.url), text: yamlText(document) },
    { url: new URL("./gen/schemas.ts", import.meta.url), text: schemasSource(document) },
    { url: new URL("./gen/client.ts", import.meta.url), text: clientSource(document) },
    { url: new URL("../../access-ledger.json", import.meta.url), text: ledgerText(routes) },
  ];
}

function yamlText(document: OpenApiDocument): string {
  return `# Generated from the routes by packages/kryton/src/client/generate.ts.\n${stringify(document, { lineWidth: 120, aliasDuplicateObjects: false })}`;
}

/** Every route with its role and project rule, one a line. */
function ledgerText(routes: readonly Route[]): string {
  const lines = routes.map(({ method, path, access }) => {
    const rule = { route: `${method} ${path}`, ...access };
    return `  ${JSON.stringify(rule)}`;
  });
  return `[\n${lines.join(",\n")}\n]\n`;
}

if (import.meta.main) {
  for (const { url, text } of await generated()) await writeFile(url, text);
}

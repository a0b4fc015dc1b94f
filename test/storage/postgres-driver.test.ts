/** The storage contract over a real PostgreSQL, and what only a database can do to it. */
import { after, before, describe } from "node:test";
import { systemEdges } from "@kontinuum/std";
import { openStore } from "@kontinuum/storage";
import { testContract } from "@kontinuum/storage/contract-suite";
import { findPostgres, startPostgres, type Postgres } from "../services/postgres.ts";
import { skipUnless } from "../services/service.ts";

const skip = skipUnless(await findPostgres());

describe("postgres driver", { skip }, () => {
  let postgres: Postgres;
  before(async () => {
    postgres = await startPostgres();
  });
  after(() => postgres.stop());

  testContract("postgres", async () => {
    const edges = systemEdges();
    const store = await openStore(postgres.url, edges);
    return {
      store,
      pass: (ms) => edges.clock.sleep(ms),
      second: () => openStore(postgres.url, edges),
      close: () => store.close(),
    };
  });
});

/**
 * Random programs on a real etcd and on our face over memory, SQLite and PostgreSQL: the answers must be the same.
 * `STORAGE_DIFFERENTIAL_PROGRAMS` and `STORAGE_DIFFERENTIAL_SEED` choose how many and which; a difference names its seed.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { seededRandom, systemEdges } from "@kontinuum/std";
import { openStore, serveEtcd } from "@kontinuum/storage";
import pg from "pg";
import { findEtcd, startEtcd } from "../services/etcd.ts";
import { findPostgres, startPostgres, type Postgres } from "../services/postgres.ts";
import { skipUnless } from "../services/service.ts";
import { answerOf, ProgramMaker, wireTo, type Wire } from "./differential.ts";

const programs = Number(process.env["STORAGE_DIFFERENTIAL_PROGRAMS"] ?? "3");
const firstSeed = Number(process.env["STORAGE_DIFFERENTIAL_SEED"] ?? "1");
const steps = 400;
const foundPostgres = await findPostgres();

/** A server with its client, and how to end both. */
interface Side {
  readonly wire: Wire;
  end(): Promise<void>;
}

describe("the same program, a real etcd and our face", { skip: skipUnless(await findEtcd()) }, () => {
  let folder: string;
  let postgres: Postgres | undefined;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "differential-"));
    if (typeof foundPostgres === "string") postgres = await startPostgres({ fsync: "off" });
  });
  after(async () => {
    await postgres?.stop();
    await rm(folder, { recursive: true });
  });

  async function etcdSide(): Promise<Side> {
    const etcd = await startEtcd();
    const wire = wireTo("etcd", etcd.endpoint);
    return {
      wire,
      end: async () => {
        wire.close();
        await etcd.stop();
      },
    };
  }

  async function ourSide(name: string, url: string): Promise<Side> {
    const store = await openStore(url, systemEdges(), { retention: { intervalMs: 0 } });
    const server = await serveEtcd(store);
    const wire = wireTo(name, `127.0.0.1:${server.port}`);
    return {
      wire,
      end: async () => {
        wire.close();
        await server.close();
        await store.close();
      },
    };
  }

  async function emptyDatabase(url: string, name: string): Promise<string> {
    const admin = new pg.Client({ connectionString: url });
    await admin.connect();
    await admin.query(`CREATE DATABASE ${name}`);
    await admin.end();
    return url.replace(/postgres$/, name);
  }

  for (let seed = firstSeed; seed < firstSeed + programs; seed++)
    test(`program ${seed}: ${steps} calls`, { timeout: 600_000 }, async () => {
      const sides = [
        await etcdSide(),
        await ourSide("memory", "memory://"),
        await ourSide("sqlite", `sqlite://${folder}/${seed}.db`),
      ];
      if (postgres) sides.push(await ourSide("postgres", await emptyDatabase(postgres.url, `p${seed}`)));
      try {
        const maker = new ProgramMaker(seededRandom(seed));
        for (let i = 0; i < steps; i++) {
          const step = maker.next();
          const [etcd = "", ...ours] = await Promise.all(sides.map(({ wire }) => answerOf(wire, step)));
          for (const [j, answer] of ours.entries())
            assert.equal(
              answer,
              etcd,
              `seed ${seed}, call ${i}, ${sides[j + 1]?.wire.name}, revision ${maker.revision}: ${step.text}`,
            );
          maker.answered(step, etcd);
        }
        assert.ok(maker.revision > steps / 10, `only ${maker.revision} revisions`);
      } finally {
        for (const side of sides) await side.end();
      }
    });
});

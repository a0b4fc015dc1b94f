/**
 * The API's own tests, over three replicas on PostgreSQL behind a round-robin proxy, while one is killed again and again.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { findPostgres, startPostgres } from "../services/postgres.ts";
import { skipUnless } from "../services/service.ts";

const root = new URL("../../", import.meta.url).pathname;
/** Tests that need nothing of a server but its API. */
const suites = [
  "http/machines.test.ts",
  "http/power.test.ts",
  "http/edges.test.ts",
  "client/generated.test.ts",
  "contract/http.test.ts",
  "auth/tickets.test.ts",
  "settings/settings.test.ts",
  "golden/golden.test.ts",
  "cli/krytonctl.test.ts",
];
/** Tests of those files about one process: its listener, its counters, its files. */
const ownProcess =
  "/listener has the contract's limits|metrics clients know|health and metrics are public|mirrored to their files/";

test(
  "the whole API suite passes behind a proxy while a replica is killed again and again",
  { skip: skipUnless(await findPostgres()), timeout: 600_000 },
  async () => {
    const postgres = await startPostgres();
    try {
      const child = spawn(
        process.execPath,
        [
          "--test",
          "--test-reporter=tap",
          `--test-skip-pattern=${ownProcess}`,
          "--import",
          new URL("behind-proxy.ts", import.meta.url).href,
          ...suites.map((suite) => `${root}packages/kryton/src/${suite}`),
        ],
        {
          env: { ...process.env, KRYTON_TEST_POSTGRES: postgres.url, NODE_TEST_CONTEXT: undefined },
          stdio: ["ignore", "pipe", "inherit"],
        },
      );
      let output = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
      const status = await new Promise((resolve) => child.once("close", resolve));
      const failed = output.split("\n").filter((line) => /^\s*not ok/.test(line));
      assert.equal(status, 0, `${failed.join("\n")}\n${output.slice(-4_000)}`);
      assert.match(output, /^# pass [1-9]\d/m, "the tests ran");
      assert.match(output, /^# skipped 0$/m);
      const kills = [...output.matchAll(/replicas killed: (\d+)/g)].reduce(
        (sum, [, n]) => sum + Number(n),
        0,
      );
      assert.ok(kills >= 10, `replicas were killed only ${kills} times`);
    } finally {
      await postgres.stop();
    }
  },
);

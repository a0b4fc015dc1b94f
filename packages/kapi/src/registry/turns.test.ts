import assert from "node:assert/strict";
import { test } from "node:test";
import { isObject, SimulatedClock } from "@kontinuum/std";
import { startServer } from "../server.fixture.ts";
import { Turns } from "./turns.ts";

test("turns come in order, and one that does not end holds the next up for a while only", async () => {
  const clock = new SimulatedClock();
  const turns = new Turns(clock);
  const order: string[] = [];
  const first = await turns.take("a");
  const second = turns.take("a").then((end) => {
    order.push("second");
    return end;
  });
  const third = turns.take("a").then((end) => {
    order.push("third");
    return end;
  });
  const other = await turns.take("b");
  assert.deepEqual(order, []);
  first();
  (await second)();
  (await third)();
  assert.deepEqual(order, ["second", "third"]);
  other();
  await turns.take("a");
  const patient = turns.take("a");
  await clock.advance(2000);
  (await patient)();
});

test("a hundred patches of one object at once all succeed", async () => {
  const fixture = await startServer({});
  const path = "/api/v1/namespaces/default/configmaps";
  await fixture.ask("POST", path, { metadata: { name: "busy" } });
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, i) =>
      fixture.ask(
        "PATCH",
        `${path}/busy`,
        { data: { [`k${i}`]: "v" } },
        { "content-type": "application/merge-patch+json" },
      ),
    ),
  );
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  const data = (await fixture.ask("GET", `${path}/busy`)).at("data");
  assert.equal(isObject(data) && Object.keys(data).length, 100);
  await fixture.stop();
});

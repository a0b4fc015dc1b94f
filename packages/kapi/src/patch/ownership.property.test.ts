/**
 * Server-side apply against an independent model: a flat map from path to value and, per owner, a plain set
 * of paths. The model knows nothing of trees, merges or FieldsV1.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { at, isObject, type JsonObject } from "@kontinuum/std";
import { compileCrd } from "../crd/compile-crd.ts";
import { widgetCrd } from "../crd/widget.fixture.ts";
import { cloneJson } from "../schema/json-value.ts";
import { serverSideApply, updateManagedFields } from "./server-side-apply.ts";

const [widgets] = compileCrd(widgetCrd());
if (!widgets) throw new Error("no resource");
const resource = widgets;
const now = "2026-01-01T00:00:00Z";

interface Config {
  readonly replicas?: number;
  readonly size?: string;
  readonly args?: readonly string[];
  readonly settings?: Readonly<Record<string, string>>;
  readonly tags?: readonly string[];
  readonly ports?: Readonly<Record<string, number | null>>;
}

const some = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined });
const name = fc.constantFrom("a", "b", "c");
const configs: fc.Arbitrary<Config> = fc
  .record({
    replicas: some(fc.integer({ min: 0, max: 2 })),
    size: some(fc.constantFrom("s", "m")),
    args: some(fc.array(name, { maxLength: 2 })),
    settings: some(fc.dictionary(name, fc.constantFrom("1", "2"), { maxKeys: 3, noNullPrototype: true })),
    tags: some(fc.uniqueArray(name)),
    ports: some(
      fc.dictionary(name, fc.option(fc.integer({ min: 1, max: 2 })), { maxKeys: 3, noNullPrototype: true }),
    ),
  })
  .map((record) => Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)));

function specOf(config: Config): JsonObject {
  const { ports, ...rest } = config;
  if (!ports) return { ...rest };
  const list = Object.entries(ports).map(([port, number]) =>
    number === null ? { name: port } : { name: port, port: number },
  );
  return { ...rest, ports: list };
}

const object = (config: Config): JsonObject => ({
  apiVersion: "example.io/v1",
  kind: "Widget",
  metadata: { name: "w", namespace: "ns" },
  spec: specOf(config),
});

type Leaves = Map<string, string>;

/** Every owned place of a spec, flat. */
function leavesOf(spec: unknown): Leaves {
  const leaves: Leaves = new Map();
  if (!isObject(spec)) return leaves;
  for (const key of ["replicas", "size", "args"]) {
    if (spec[key] !== undefined) leaves.set(key, JSON.stringify(spec[key]));
  }
  const { settings, tags, ports } = spec;
  if (isObject(settings))
    for (const key of Object.keys(settings)) leaves.set(`settings/${key}`, String(settings[key]));
  if (Array.isArray(tags)) for (const tag of tags) leaves.set(`tags/${tag}`, "");
  if (Array.isArray(ports)) {
    for (const port of ports.filter(isObject)) {
      leaves.set(`ports/${String(port["name"])}`, "");
      for (const key of Object.keys(port))
        leaves.set(`ports/${String(port["name"])}/${key}`, String(port[key]));
    }
  }
  return leaves;
}

class Model {
  values: Leaves = new Map();
  owners = new Map<string, Set<string>>();

  /** True when the apply went through. */
  apply(manager: string, config: Config, force: boolean): boolean {
    const owner = `Apply ${manager}`;
    const wanted = leavesOf(specOf(config));
    const others = [...this.owners].filter(([key]) => key !== owner);
    const next = new Map([...this.values, ...wanted]);
    for (const path of this.owners.get(owner) ?? []) {
      if (wanted.has(path) || others.some(([, paths]) => paths.has(path))) continue;
      for (const key of next.keys()) if (key === path || key.startsWith(`${path}/`)) next.delete(key);
    }
    const changed = [...next]
      .filter(([path, value]) => this.values.get(path) !== value)
      .map(([path]) => path);
    if (!force && others.some(([, paths]) => changed.some((path) => paths.has(path)))) return false;
    this.#take(others, next, changed);
    this.owners.set(owner, new Set(wanted.keys()));
    this.values = next;
    return true;
  }

  update(manager: string, config: Config): void {
    const next = leavesOf(specOf(config));
    const changed = [...next]
      .filter(([path, value]) => this.values.get(path) !== value)
      .map(([path]) => path);
    this.#take([...this.owners], next, changed);
    const owner = `Update ${manager}`;
    this.owners.set(owner, new Set([...(this.owners.get(owner) ?? []), ...changed]));
    this.values = next;
  }

  #take(owners: readonly (readonly [string, Set<string>])[], next: Leaves, changed: readonly string[]): void {
    for (const [, paths] of owners) {
      for (const path of paths) if (changed.includes(path) || !next.has(path)) paths.delete(path);
    }
  }

  owned(): Record<string, string[]> {
    const entries = [...this.owners].map(([key, paths]): [string, string[]] => [key, [...paths].sort()]);
    return Object.fromEntries(entries.filter(([, paths]) => paths.length > 0));
  }
}

/** Flat paths of a managedFields entry, read without the code under test. */
function flatFields(fields: unknown): string[] {
  const spec = at(fields, "f:spec");
  if (!isObject(spec)) return [];
  const found: string[] = [];
  for (const [key, node] of Object.entries(spec)) {
    const field = key.slice(2);
    if (field === "." || key === ".") continue;
    if (!["settings", "tags", "ports"].includes(field)) {
      found.push(field);
      continue;
    }
    for (const [step, below] of Object.entries(isObject(node) ? node : {})) {
      if (step === ".") continue;
      const id =
        field === "settings"
          ? step.slice(2)
          : String(JSON.parse(step.slice(2))?.name ?? JSON.parse(step.slice(2)));
      const path = `${field}/${id}`;
      const children = isObject(below) ? Object.keys(below) : [];
      if (children.length === 0 || children.includes(".")) found.push(path);
      for (const child of children) if (child !== ".") found.push(`${path}/${child.slice(2)}`);
    }
  }
  return found.sort();
}

function ownedIn(live: JsonObject | undefined): Record<string, string[]> {
  const list = at(live, "metadata", "managedFields");
  const entries = (Array.isArray(list) ? list : []).map((entry): [string, string[]] => [
    `${String(at(entry, "operation"))} ${String(at(entry, "manager"))}`,
    flatFields(at(entry, "fieldsV1")),
  ]);
  return Object.fromEntries(entries.filter(([, paths]) => paths.length > 0));
}

const operations = fc.oneof(
  fc.record({
    kind: fc.constant("apply" as const),
    manager: fc.constantFrom("m1", "m2", "m3"),
    config: configs,
    force: fc.boolean(),
  }),
  fc.record({ kind: fc.constant("update" as const), manager: fc.constantFrom("u1", "u2"), config: configs }),
);

test("the owners and values of any history are the model's; applying twice changes nothing", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(operations, { minLength: 1, maxLength: 8 }), async (history) => {
      const model = new Model();
      let live: JsonObject | undefined;
      for (const operation of history) {
        const { manager, config } = operation;
        if (operation.kind === "update") {
          const after: JsonObject = live ? { ...cloneJson(live), spec: specOf(config) } : object(config);
          live = await updateManagedFields({
            resource,
            before: live,
            after,
            manager,
            operation: "Update",
            subresource: "",
            now,
          });
          model.update(manager, config);
        } else {
          // An object nobody owns anything of is a history of its own (before-first-apply), tested elsewhere.
          if (live && at(live, "metadata", "managedFields") === undefined) return;
          const request = {
            resource,
            applied: object(config),
            manager,
            force: operation.force,
            subresource: "",
            now,
          };
          const before = live && cloneJson(live);
          const outcome = await serverSideApply({ ...request, live });
          assert.deepEqual(live, before, "inputs are not changed");
          assert.equal(outcome.conflicts === undefined, model.apply(manager, config, operation.force));
          if (outcome.conflicts) continue;
          live = outcome.object;
          // A configuration that owns nothing leaves no record: the next apply starts a history of its own.
          if (at(live, "metadata", "managedFields") === undefined) return;
          const again = await serverSideApply({ ...request, live, now: "2027-01-01T00:00:00Z" });
          assert.deepEqual(again, outcome, "applying twice changes nothing");
        }
        assert.deepEqual([...leavesOf(at(live, "spec"))].sort(), [...model.values].sort());
        assert.deepEqual(ownedIn(live), model.owned());
      }
    }),
    { numRuns: 250, seed: 4 },
  );
});

test("without force, nobody loses a field they own", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom("m1", "m2", "m3"), configs), { minLength: 2, maxLength: 8 }),
      async (applies) => {
        let live: JsonObject | undefined;
        for (const [manager, config] of applies) {
          const outcome = await serverSideApply({
            resource,
            live,
            applied: object(config),
            manager,
            force: false,
            subresource: "",
            now,
          });
          if (outcome.conflicts) continue;
          const before = ownedIn(live);
          const values = leavesOf(at(live, "spec"));
          const after = ownedIn(outcome.object);
          const valuesAfter = leavesOf(at(outcome.object, "spec"));
          for (const [owner, paths] of Object.entries(before)) {
            if (owner === `Apply ${manager}`) continue;
            assert.deepEqual(after[owner], paths);
            for (const path of paths) assert.equal(valuesAfter.get(path), values.get(path));
          }
          live = outcome.object;
        }
      },
    ),
    { numRuns: 200, seed: 5 },
  );
});

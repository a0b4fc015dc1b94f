/**
 * Defaulting by a structural schema (apiextensions.k8s.io/v1): on every write and on every read.
 *
 * A default applies where its key is absent, or `null` while the field is not nullable, also inside list
 * items and values of maps; a parent is never made to hold a child's default. A `null` of a field that is
 * neither nullable nor defaulted is dropped.
 *
 * One object gets at most {@link maxDefaultedValues} values this way, so that a large default and a long list
 * do not multiply into all of memory; what does not fit stays absent, and validation sees that.
 */
import { isObject, type JsonObject } from "@kontinuum/std";
import { cloneJson, put } from "./json-value.ts";
import type { SchemaNode } from "./schema-node.ts";

/** Most values (scalars, lists and maps) that defaults add to one object. */
export const maxDefaultedValues = 1_000_000;

/** Fills defaults and drops nulls, in place. */
export type Defaulter = (value: unknown) => void;

/** What is left to add to the object at hand. */
interface Budget {
  left: number;
}

type Fill = (value: unknown, budget: Budget) => void;

interface Child {
  readonly schema: SchemaNode;
  readonly size: number;
  readonly fill: Fill;
}

const isRefusedNull = (value: unknown, schema: SchemaNode): boolean => value === null && !schema.nullable;

function sizeOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce<number>((total, item) => total + sizeOf(item), 1);
}

/** True when a copy of the child's default may be made. */
function take({ size }: Child, budget: Budget): boolean {
  if (budget.left < size) return false;
  budget.left -= size;
  return true;
}

function compileChild(schema: SchemaNode): Child {
  return {
    schema,
    size: schema.default === undefined ? 0 : sizeOf(schema.default),
    fill: compileFill(schema),
  };
}

const fillNothing: Fill = () => undefined;

function compileFill(schema: SchemaNode): Fill {
  const children = new Map([...schema.properties].map(([name, property]) => [name, compileChild(property)]));
  const defaults = [...children].filter(([, child]) => child.schema.default !== undefined);
  const additional = schema.additional && compileChild(schema.additional);
  const items = schema.items && compileChild(schema.items);
  if (children.size === 0 && !additional && !items) return fillNothing;

  const fillObject = (object: JsonObject, budget: Budget): void => {
    for (const [name, child] of defaults) {
      if (!Object.hasOwn(object, name) && take(child, budget))
        put(object, name, cloneJson(child.schema.default));
    }
    for (const key of Object.keys(object)) {
      const child = children.get(key) ?? additional;
      if (!child) continue;
      if (isRefusedNull(object[key], child.schema)) {
        if (child.schema.default === undefined || !take(child, budget)) {
          delete object[key];
          continue;
        }
        put(object, key, cloneJson(child.schema.default));
      }
      child.fill(object[key], budget);
    }
  };
  const fillList = (list: unknown[], child: Child, budget: Budget): void => {
    for (let i = 0; i < list.length; i++) {
      if (child.schema.default !== undefined && isRefusedNull(list[i], child.schema) && take(child, budget))
        list[i] = cloneJson(child.schema.default);
      child.fill(list[i], budget);
    }
  };
  return (value, budget) => {
    if (isObject(value)) fillObject(value, budget);
    else if (items && Array.isArray(value)) fillList(value, items, budget);
  };
}

/** Compiles `schema` into a function that changes a value in place. */
export function compileDefaults(schema: SchemaNode): Defaulter {
  const fill = compileFill(schema);
  return (value) => fill(value, { left: maxDefaultedValues });
}

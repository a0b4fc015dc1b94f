/**
 * From a method and a path to a route: a tree over the parts of paths, in which a literal part goes before a
 * parameter.
 */
import type { Route } from "./route.ts";

/** What a path leads to. */
export type Found =
  | { readonly kind: "route"; readonly route: Route; readonly params: Readonly<Record<string, string>> }
  /** The path is served, with other methods. */
  | { readonly kind: "method"; readonly path: string; readonly allow: readonly string[] };

interface Node {
  readonly literals: Map<string, Node>;
  /** What follows a parameter at this place. */
  parameter: Node | undefined;
  /** Routes of `{rest}`: everything below this place. */
  readonly rest: Map<string, Route>;
  /** Routes that end here, by method. */
  readonly routes: Map<string, Route>;
}

/** See the module comment. */
export class Router {
  readonly #root: Node = emptyNode();

  constructor(routes: readonly Route[]) {
    for (const route of routes) this.#add(route);
  }

  /** The route of a request, with its parameters decoded; `undefined` for a path nobody serves. HEAD is served as GET. */
  find(method: string, path: string): Found | undefined {
    const wanted = method === "HEAD" ? "GET" : method;
    const parts = path.split("/");
    const values: string[] = [];
    let other: Map<string, Route> | undefined;
    const take = (routes: Map<string, Route>): Route | undefined => {
      const route = routes.get(wanted);
      if (!route && routes.size > 0) other ??= routes;
      return route;
    };
    const walk = (node: Node, at: number): Route | undefined => {
      const part = parts[at];
      if (part === undefined) return take(node.routes);
      const literal = node.literals.get(part);
      const found = literal && walk(literal, at + 1);
      if (found) return found;
      if (node.parameter && part !== "") {
        values.push(part);
        const below = walk(node.parameter, at + 1);
        if (below) return below;
        values.pop();
      }
      return take(node.rest);
    };
    const route = walk(this.#root, 0);
    if (route) {
      const names = [...route.path.matchAll(/\{(\w+)\}/g)].flatMap(([, name]) => name ?? []);
      const params = Object.fromEntries(values.map((value, index) => [names[index] ?? "", decoded(value)]));
      return { kind: "route", route, params };
    }
    if (!other) return undefined;
    const allow = [...other.keys()].flatMap((known) => (known === "GET" ? ["GET", "HEAD"] : [known]));
    return { kind: "method", path: [...other.values()][0]?.path ?? path, allow };
  }

  #add(route: Route): void {
    let node = this.#root;
    for (const part of route.path.split("/")) {
      const name = /^\{(\w+)\}$/.exec(part)?.[1];
      if (name === "rest") {
        node.rest.set(route.method, route);
        return;
      }
      if (name === undefined) {
        let next = node.literals.get(part);
        if (!next) node.literals.set(part, (next = emptyNode()));
        node = next;
      } else {
        node = node.parameter ??= emptyNode();
      }
    }
    node.routes.set(route.method, route);
  }
}

function emptyNode(): Node {
  return { literals: new Map(), parameter: undefined, rest: new Map(), routes: new Map() };
}

/** A part as its bytes say; one that is not properly encoded stands for itself. */
function decoded(part: string): string {
  if (!part.includes("%")) return part;
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * What every service of the face shares: the store, its identity on the wire, access of a call, and
 * the one place where failures become etcd's statuses.
 */
import type { HandlerContext } from "@connectrpc/connect";
import { CodedError } from "@kontinuum/std";
import type { Store } from "../contract.ts";
import { fullAccess, isOperator, type EtcdAccess, type EtcdAuthorizer } from "./access.ts";
import { header } from "./messages.ts";
import { toWire } from "./status-text.ts";

/** Ids in every header. A store is one member of a cluster of one. */
export const identity = { clusterId: 0x6b6f6e74696e7575n, memberId: 1n } as const;

/** The face over one store. */
export class EtcdFace {
  readonly store: Store;
  readonly #authorize: EtcdAuthorizer | undefined;

  constructor(store: Store, authorize: EtcdAuthorizer | undefined) {
    this.store = store;
    this.#authorize = authorize;
  }

  /** A header at a revision. */
  readonly head = (revision: number) => header(identity, revision);

  /** Who calls; refuses with `unauthenticated`. */
  async access(context: HandlerContext): Promise<EtcdAccess> {
    if (!this.#authorize) return fullAccess;
    const method = `/${context.service.typeName}/${context.method.name}`;
    return this.#authorize({ method, headers: context.requestHeader });
  }

  /** Serves a unary call. */
  async call<T>(context: HandlerContext, work: (access: EtcdAccess) => Promise<T>): Promise<T> {
    try {
      return await work(await this.access(context));
    } catch (error) {
      throw toWire(error);
    }
  }

  /** The same for calls that only an operator may make. */
  operatorCall<T>(context: HandlerContext, work: () => Promise<T>): Promise<T> {
    return this.call(context, (access) => {
      requireOperator(access);
      return work();
    });
  }
}

/** Refuses everybody but an operator. */
export function requireOperator(access: EtcdAccess): void {
  if (!isOperator(access)) throw new CodedError("permission_denied", "this call is for operators");
}

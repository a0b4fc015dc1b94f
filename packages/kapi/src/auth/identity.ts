/**
 * Who makes a request: the authenticators in order, then anonymous.
 *
 * A credential that was presented and refused is 401, whatever anybody else would say; failures of one address are
 * limited before any costly check is made for it.
 */
import type { Clock } from "@kontinuum/std";
import type { Authenticator, Credentials, UserInfo } from "../contract.ts";
import type { RequestContext } from "../pipeline/context.ts";
import { StatusError, unauthorized } from "../status/status.ts";
import { header } from "../wire/request.ts";

/** Every authenticated user is in this group. */
export const authenticatedGroup = "system:authenticated";
/** Members pass every authorization. */
export const mastersGroup = "system:masters";

/** Who asks without credentials. */
export const anonymousUser: UserInfo = { name: "system:anonymous", groups: ["system:unauthenticated"] };

/** Failures of one address within a window before it has to wait. */
const maxFailures = 30;
const windowMs = 10_000;
/** Addresses whose failures are remembered. */
const maxAddresses = 10_000;

/** Longest bearer token that is looked at. */
const maxTokenLength = 64 * 1024;

/** Reads `Authorization: Bearer …`. */
export function bearerOf(context: Pick<RequestContext, "request">): string | undefined {
  const match = /^bearer\s+(\S+)\s*$/i.exec(header(context.request, "authorization") ?? "");
  return match?.[1];
}

/** Counts failed attempts per address. */
class FailureLimit {
  readonly #clock: Clock;
  readonly #failures = new Map<string, { count: number; until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Throws 429 when an address failed too often. */
  check(address: string): void {
    const entry = this.#failures.get(address);
    if (!entry) return;
    const left = entry.until - this.#clock.monotonic();
    if (left <= 0) this.#failures.delete(address);
    else if (entry.count >= maxFailures) {
      throw new StatusError(
        429,
        "TooManyRequests",
        "too many failed attempts to authenticate, please try again later",
        {
          retryAfterSeconds: Math.max(1, Math.ceil(left / 1000)),
        },
      );
    }
  }

  failed(address: string): void {
    const entry = this.#failures.get(address);
    if (entry) entry.count++;
    else {
      if (this.#failures.size >= maxAddresses) this.#failures.clear();
      this.#failures.set(address, { count: 1, until: this.#clock.monotonic() + windowMs });
    }
  }
}

/** Options of {@link Identity}. */
export interface IdentityOptions {
  readonly authenticators: readonly Authenticator[];
  readonly anonymous: boolean;
  readonly clock: Clock;
}

/** Authenticates requests. */
export class Identity {
  readonly #options: IdentityOptions;
  readonly #limit: FailureLimit;

  constructor(options: IdentityOptions) {
    this.#options = options;
    this.#limit = new FailureLimit(options.clock);
  }

  /** The user behind credentials. Fails with 401 and 429. */
  async authenticate(context: RequestContext): Promise<UserInfo> {
    const { request } = context;
    const authorization = header(request, "authorization");
    const bearer = bearerOf(context);
    const { certificate } = request;
    const credentials: Credentials = {
      ...(bearer === undefined ? {} : { bearer }),
      ...(certificate === undefined ? {} : { certificate }),
      headers: request.headers,
      address: request.address,
    };
    const presented = (authorization !== undefined && authorization !== "") || certificate !== undefined;
    if (presented) this.#limit.check(request.address);
    if ((bearer?.length ?? 0) > maxTokenLength) throw unauthorized();
    for (const authenticator of this.#options.authenticators) {
      const result = await authenticator.authenticate(credentials);
      if (result === undefined) continue;
      if (result === "invalid") {
        this.#limit.failed(request.address);
        throw unauthorized();
      }
      return withGroup(result, authenticatedGroup);
    }
    // A credential nobody knows is a failure, not an anonymous request.
    if (authorization !== undefined && authorization !== "") {
      this.#limit.failed(request.address);
      throw unauthorized();
    }
    if (!this.#options.anonymous) throw unauthorized();
    return anonymousUser;
  }
}

/** The user with one more group. */
export function withGroup(user: UserInfo, group: string): UserInfo {
  if (user.groups.includes(group) || user.groups.includes("system:unauthenticated")) return user;
  return { ...user, groups: [...user.groups, group] };
}

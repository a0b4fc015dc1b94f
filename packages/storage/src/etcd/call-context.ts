/**
 * What an implementation may ask about its call; headers are only made when it does.
 */
import type { IncomingHttpHeaders } from "node:http2";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { createContextValues, type HandlerContext } from "@connectrpc/connect";
import type { Deadline } from "./deadline.ts";

/** The context of a direct call. */
export class CallContext implements HandlerContext {
  readonly service: DescService;
  readonly method: DescMethod;
  readonly signal: AbortSignal;
  readonly requestMethod = "POST";
  readonly protocolName = "grpc";
  readonly #headers: IncomingHttpHeaders;
  readonly #deadline: Deadline;

  constructor(
    { service, method }: { readonly service: DescService; readonly method: DescMethod },
    headers: IncomingHttpHeaders,
    signal: AbortSignal,
    deadline: Deadline,
  ) {
    this.service = service;
    this.method = method;
    this.#headers = headers;
    this.signal = signal;
    this.#deadline = deadline;
  }

  get requestHeader(): Headers {
    const made = new Headers();
    for (const [name, value] of Object.entries(this.#headers))
      if (!name.startsWith(":")) for (const each of [value ?? []].flat()) made.append(name, each);
    return made;
  }

  get responseHeader(): Headers {
    return new Headers();
  }

  get responseTrailer(): Headers {
    return new Headers();
  }

  get values(): HandlerContext["values"] {
    return createContextValues();
  }

  get url(): string {
    return `/${this.service.typeName}/${this.method.name}`;
  }

  timeoutMs(): number | undefined {
    return this.#deadline.leftMs();
  }
}

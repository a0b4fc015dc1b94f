/**
 * Following the event stream from a shell: reconnects and resumes after the last event seen.
 */
import { messageOf, systemClock } from "@kontinuum/std";
import { anywhere, type Target } from "./ctl-http.ts";
import { ExitWith, type Io } from "./io.ts";

const reconnectMs = 1_000;

/**
 * Follows events until the process is interrupted. With `onEvent` it is called for each batch; without,
 * each event is printed as one line of JSON.
 */
export async function followEvents(
  target: Target,
  io: Io,
  project: string | undefined,
  onEvent: (() => Promise<void>) | undefined,
): Promise<void> {
  let last: string | undefined;
  const query = project === undefined ? "" : `?project=${encodeURIComponent(project)}`;
  for (;;) {
    try {
      const headers = target.headers({
        Accept: "text/event-stream",
        ...(last ? { "Last-Event-ID": last } : {}),
      });
      const url = `${target.url}/api/v1/events/stream${query}`;
      const response = await anywhere.stream({ method: "GET", url, headers, timeoutMs: 0, maxBytes: 0 });
      if (response.status !== 200) {
        response.body.destroy();
        io.err(`krytonctl: the event stream answered ${response.status}\n`);
        throw new ExitWith(1);
      }
      for await (const frame of frames(response.body)) {
        if (frame.id !== undefined) last = frame.id;
        if (frame.event !== "cloudevent") continue;
        if (onEvent) await onEvent();
        else io.out(`${frame.data}\n`);
      }
    } catch (error) {
      if (error instanceof ExitWith) throw error;
      io.err(`krytonctl: stream interrupted: ${messageOf(error)}\n`);
    }
    await systemClock.sleep(reconnectMs);
  }
}

interface Frame {
  readonly id: string | undefined;
  readonly event: string | undefined;
  readonly data: string;
}

/** Frames of a server-sent event stream. */
export async function* frames(body: AsyncIterable<Uint8Array>): AsyncIterable<Frame> {
  const decoder = new TextDecoder();
  let pending = "";
  for await (const chunk of body) {
    pending += decoder.decode(chunk, { stream: true });
    for (let end = pending.indexOf("\n\n"); end >= 0; end = pending.indexOf("\n\n")) {
      const lines = pending.slice(0, end).split("\n");
      pending = pending.slice(end + 2);
      const field = (name: string): string | undefined => {
        const line = lines.find((candidate) => candidate.startsWith(`${name}: `));
        return line?.slice(name.length + 2);
      };
      const data = field("data");
      if (data !== undefined) yield { id: field("id"), event: field("event"), data };
    }
  }
}

/**
 * Work with a limit: it is told to stop by its signal, and not waited for any longer.
 */
import { CodedError, type Clock } from "@kontinuum/std";

/** The result of `work`, or `deadline_exceeded` after `limitMs`. */
export async function limited<T>(
  clock: Clock,
  limitMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = clock.timer(limitMs, () => {
    const late = new CodedError("deadline_exceeded", `no answer within ${limitMs} ms`);
    abort.abort(late);
    reject(late);
  });
  try {
    return await Promise.race([work(abort.signal), promise]);
  } finally {
    timer.clear();
  }
}

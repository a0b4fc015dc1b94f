/**
 * A deadline that holds whatever the work is waiting for: a call that never answers, a loop that goes on, a start
 * that hangs.
 */
import { CodedError, type Clock } from "@kontinuum/std";

/** When the work must have ended, and what is said when it has not. */
export interface Deadline {
  readonly clock: Clock;
  /** Time left, milliseconds. */
  readonly leftMs: number;
  /** Aborts to give up earlier. */
  readonly signal?: AbortSignal;
  /** Asked when the time is over. */
  readonly reason: () => string;
}

/**
 * Resolves as `work` does. Fails with `deadline_exceeded` and the reason when the time is over, with `cancelled` when the signal
 * aborts; the work's own signal aborts at the same moment, and what becomes of it afterwards is nobody's business.
 */
export async function beforeDeadline<T>(
  work: (signal: AbortSignal) => Promise<T>,
  { clock, leftMs, signal, reason }: Deadline,
): Promise<T> {
  const over = new AbortController();
  const inner = signal ? AbortSignal.any([signal, over.signal]) : over.signal;
  const done = new AbortController();
  const waiting = signal ? AbortSignal.any([signal, done.signal]) : done.signal;
  const late = clock.sleep(Math.max(0, leftMs), waiting).then((): never => {
    throw new CodedError("deadline_exceeded", reason());
  });
  const working = work(inner);
  // The one that loses the race fails unheard.
  for (const each of [late, working]) each.catch(() => {});
  try {
    return await Promise.race([working, late]);
  } finally {
    over.abort();
    done.abort();
  }
}

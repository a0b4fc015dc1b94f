/**
 * Answers in the order of the requests, while several are worked on at once: what writers share (one flush, one round trip) a
 * stream of requests shares, too.
 */

type Next<T, R> = { readonly request: IteratorResult<T> } | { readonly answer: R };

/** Answers to `requests`, at most `most` of them under way. A failure of one ends all, after the answers before it. */
export async function* inOrder<T, R>(
  requests: AsyncIterable<T>,
  most: number,
  work: (request: T) => Promise<R>,
): AsyncGenerator<R, void, undefined> {
  const iterator = requests[Symbol.asyncIterator]();
  const under: Promise<R>[] = [];
  let reading: Promise<Next<T, R>> | undefined;
  let ended = false;
  try {
    for (;;) {
      const events: Promise<Next<T, R>>[] = [];
      const [first] = under;
      if (first) events.push(first.then((answer) => ({ answer })));
      if (!ended && under.length < most)
        events.push((reading ??= iterator.next().then((request) => ({ request }))));
      if (events.length === 0) return;
      const event = await Promise.race(events);
      if ("answer" in event) {
        under.shift();
        yield event.answer;
        continue;
      }
      reading = undefined;
      if (event.request.done === true) ended = true;
      else {
        const answer = work(event.request.value);
        // Seen when it is its turn.
        answer.catch(() => {});
        under.push(answer);
      }
    }
  } finally {
    // Not waited for: a request that never comes would hold up the end.
    reading?.catch(() => {});
    if (!ended) iterator.return?.()?.catch(() => {});
  }
}

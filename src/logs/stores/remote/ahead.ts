/** The next piece is fetched while the one before is used; who stops ends that too. */
export async function* ahead<T>(
  begin: (signal: AbortSignal) => AsyncGenerator<T>,
  signal: AbortSignal,
): AsyncGenerator<T> {
  const own = new AbortController();
  const pieces = begin(AbortSignal.any([signal, own.signal]));
  try {
    let next = pieces.next();
    for (;;) {
      const piece = await next;
      if (piece.done === true) return;
      next = pieces.next();
      // Told when it is waited for.
      next.catch(() => undefined);
      yield piece.value;
    }
  } finally {
    own.abort();
  }
}

/**
 * A question whose answer is true of the time when it was asked: all who want to know at once share it, but nobody gets the answer to
 * one that was asked before they came. At most one is under way and one is waited for.
 */
export function sharedQuestion<T>(ask: () => Promise<T>): () => Promise<T> {
  let asking: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  function question(): Promise<T> {
    if (asking === undefined) {
      asking = ask().finally(() => {
        asking = undefined;
      });
      return asking;
    }
    next ??= asking
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return question();
      });
    return next;
  }
  return question;
}

/** Returns all values of an iterable, as Array.fromAsync of ES2026 does. */
export async function collect<T>(values: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const value of values) all.push(value);
  return all;
}

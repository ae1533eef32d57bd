/** Returns the result for each item, with at most `max` calls in progress. After the first failure, which it throws, no call starts. */
export async function mapConcurrent<A, B>(
  items: readonly A[],
  max: number,
  map: (item: A) => Promise<B>,
): Promise<B[]> {
  const results: B[] = [];
  let hasFailed = false;
  const entries = items.entries();
  const work = async (): Promise<void> => {
    for (const [index, item] of entries) {
      if (hasFailed) return;
      results[index] = await map(item);
    }
  };
  const workers = Array.from({ length: Math.min(max, items.length) }, work);
  await Promise.all(workers).finally(() => (hasFailed = true));
  return results;
}

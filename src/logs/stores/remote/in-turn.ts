const atOnce = 4;

/** The answers to all, of which some are asked at once. */
export async function inTurn<A, B>(all: readonly A[], ask: (one: A) => Promise<B>): Promise<B[]> {
  const found: B[] = [];
  for (let at = 0; at < all.length; at += atOnce)
    found.push(...(await Promise.all(all.slice(at, at + atOnce).map(async (one) => await ask(one)))));
  return found;
}

export const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

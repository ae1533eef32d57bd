import { expect, test } from '@jest/globals';
import { ListWatch } from '../../../../src/cluster/cache/list-watch.ts';
import { configMap, FakeClock, FakeCluster, listOf } from '../../../labs/cluster-fakes.ts';

test('the text of a page stays intact while the caller handles the page, even after the next page has arrived', async () => {
  const cluster = new FakeCluster();
  const { signal } = new AbortController();
  const path = '/api/v1/configmaps';
  const pages = new ListWatch({ client: cluster, path, clock: new FakeClock(), maxSilence: 1000, signal }).list();
  const sizes = [10, 200, 30, 400, 1];
  let page = pages.next();
  const respond = async (index: number): Promise<void> => {
    const items = [configMap(`page-${index}`, '1', { text: 'x'.repeat((sizes[index] ?? 0) * 1024) })];
    const next = index < sizes.length - 1 ? { continue: 'next' } : {};
    await cluster.last.respond(200, listOf(items, { resourceVersion: '1', ...next }));
  };
  await respond(0);
  for (const index of sizes.keys()) {
    const { value } = await page;
    if (index < sizes.length - 1) await respond(index + 1);
    expect(value?.items.map(({ bytes }) => JSON.parse(bytes.toString()) as unknown)).toMatchObject([
      { metadata: { name: `page-${index}` } },
    ]);
    page = pages.next();
  }
  expect(await page).toEqual({ done: true, value: undefined });
});

import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, seed } from '../../../hack/cluster/chosen.ts';
import { startSearchServer, type SearchServerName } from '../../../hack/log-stores/search-servers.ts';
import type { LogRecord } from '../../../src/logs/stores/log-store.ts';
import { SearchStore } from '../../../src/logs/stores/search/store.ts';
import { indexPrefix, load } from './fluent-bit.ts';
import { tokensOf } from '../../../src/logs/stores/search/words.ts';
import { storeSuite, type Stand } from './suite.ts';

/** `shards` is the number of shards per index. */
export function searchSuite(name: SearchServerName, count: number, shards: number): void {
  storeSuite(name, {
    count,
    digits: 3,
    begin: (records) => searchStand(name, records, shards),
    more: (stand) =>
      test('the model of the log store splits words like the analyzer of the search server', async () => {
        const signs = fc.constantFrom(...Array.from(`ab1_.:',;-/ "Z`), 'x'.repeat(130));
        await fc.assert(
          fc.asyncProperty(
            fc.string({
              unit: fc.oneof(signs, fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 1 })),
              maxLength: 40,
            }),
            async (text) => {
              expect(tokensOf(text)).toEqual(await analyzed(stand().url, text));
            },
          ),
          { numRuns: 300 },
        );
      }),
  });
}

async function analyzed(url: string, text: string): Promise<object[]> {
  const body = JSON.stringify({ analyzer: 'standard', text });
  const response = await fetch(`${url}/_analyze`, {
    method: 'POST',
    body,
    headers: { 'Content-Type': 'application/json' },
  });
  const { tokens } = (await response.json()) as {
    tokens: { token: string; start_offset: number; end_offset: number }[];
  };
  return tokens.map(({ token: word, start_offset: start, end_offset: end }) => ({ word, start, end }));
}

/** Starts a real server with these records. */
async function searchStand(name: SearchServerName, records: readonly LogRecord[], shards: number): Promise<Stand> {
  const dir = await mkdtemp(join(tmpdir(), 'platform-apiserver-log-store-'));
  const server = await startSearchServer(name, dir, await freePort(29_000 + seed(dir, 1_000)));
  const kind = name.startsWith('opensearch') ? 'opensearch' : 'elasticsearch';
  await load(server.url, records, { shards, isTyped: name.startsWith('elasticsearch-6') });
  const endpoint = { url: server.url, authorization: () => undefined };
  const store = new SearchStore({ name: kind, endpoint, indexPrefix, timeField: '@timestamp' });
  return {
    store,
    url: server.url,
    async close() {
      await store.close();
      await server.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/**
 * Process that follows a replayed watch of nodes: with the server's cache, or as a control program that only reads the
 * lines and copies their bytes. Arguments: 'cache' or 'lines', and a `Replay` as JSON. Reports its CPU time and the
 * number of changes whenever its parent sends a message.
 */
import { get } from 'node:https';
import { CachedResource } from '../../src/cluster/catalogue/cached-resource.ts';
import { createKubeClient } from '../../src/cluster/client/client.ts';
import { nodes } from '../../src/resources/kinds/nodes.ts';
import { createLogger } from '../../src/runtime/logger.ts';
import { systemClock } from '../../src/runtime/time.ts';
import { paths } from './paths.ts';
import type { Replay } from './replay.ts';

export interface Followed {
  /** CPU time of all threads since the start of the process, in milliseconds. */
  readonly cpu: number;
  readonly changes: number;
}

const [what = '', replay = '{}'] = process.argv.slice(2);
const { url, ca } = JSON.parse(replay) as Replay;
let changes = 0;

async function followWithCache(): Promise<void> {
  const access = { server: url, tls: async () => ({ ca, rejectUnauthorized: true }), headers: async () => ({}) };
  const client = await createKubeClient({ load: () => access });
  const cache = new CachedResource(nodes, { client, log: createLogger({ silent: true }), clock: systemClock });
  cache.store.subscribe({
    change: () => {
      changes += 1;
    },
    reset: () => undefined,
  });
  cache.start();
  await cache.waitForSync(new AbortController().signal);
}

/** Reads the lines, finds the name in the first bytes of each line, and keeps a copy of each node's last line. */
function followLines(): Promise<void> {
  const newline = 0x0a;
  const last = new Map<string, Buffer>();
  let rest = Buffer.alloc(0);
  return new Promise((resolve) => {
    get(`${url}${paths.core}?watch=true`, { ca }, (response) => {
      resolve();
      response.on('data', (chunk: Buffer) => {
        let start = 0;
        for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
          const line = Buffer.concat([rest, chunk.subarray(start, end)]);
          rest = Buffer.alloc(0);
          start = end + 1;
          last.set(/"name":"([^"]*)"/.exec(line.toString('latin1', 0, 200))?.[1] ?? '', Buffer.from(line));
          changes += 1;
        }
        rest = Buffer.concat([rest, chunk.subarray(start)]);
      });
    });
  });
}

await (what === 'cache' ? followWithCache() : followLines());
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.({ cpu: (user + system) / 1000, changes } satisfies Followed);
});
process.on('disconnect', () => process.exit());
process.send?.('ready');

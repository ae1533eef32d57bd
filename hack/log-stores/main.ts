/** `main.ts NAME [PORT]`: runs a real, empty log store on loopback until Ctrl-C. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../cluster/chosen.ts';
import { startLoki } from './loki.ts';
import type { RunningService } from '../cluster/running.ts';
import { searchServers, startSearchServer, type SearchServerName } from './search-servers.ts';

const [name = '', port = '9200'] = process.argv.slice(2);
const isSearchServer = (text: string): text is SearchServerName => Object.hasOwn(searchServers, text);

async function start(dir: string): Promise<RunningService> {
  const free = await freePort(Number(port));
  if (name === 'loki') return await startLoki(dir, free);
  if (isSearchServer(name)) return await startSearchServer(name, dir, free);
  throw new Error(`usage: main.ts ${[...Object.keys(searchServers), 'loki'].join(' | ')} [PORT]`);
}

try {
  const dir = await mkdtemp(join(tmpdir(), 'platform-apiserver-log-store-'));
  try {
    const store = await start(dir);
    console.log(`${name} is ready at ${store.url}; Ctrl-C stops it and deletes its data`);
    await Promise.race(['SIGINT', 'SIGTERM'].map((signal) => once(process, signal)));
    await store.stop();
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

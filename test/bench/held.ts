/** Measures the memory that our server uses for forwarded watches. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { paths } from './paths.ts';
import { memory } from './processes.ts';
import { request } from './requests.ts';
import type { Stand } from './stand.ts';

export interface HeldFigures {
  readonly watches: number;
  /** Megabytes of an otherwise idle server, before and after the watches are opened. */
  readonly before: number;
  readonly after: number;
  readonly problems: readonly string[];
}

const watches = 1_000;
const atOnce = 20;
/** Milliseconds to wait for the garbage collection. */
const settle = 5_000;

export async function measureHeld({ site }: Stand, signal: AbortSignal): Promise<HeldFigures> {
  const server = await site.another('held');
  const sockets: Socket[] = [];
  const problems = new Set<string>();
  try {
    await server.ready();
    const { tokens } = site.ours;
    const open = async (index: number): Promise<void> => {
      const { text } = request(paths.quietWatch, {}, { token: tokens.plain[index % tokens.plain.length] });
      const { host, port } = server.faces.plain;
      const socket = connect({ host, port }).on('error', (error) => problems.add(error.message));
      sockets.push(socket);
      socket.write(text);
      const [head] = (await once(socket, 'data', { signal })) as [Buffer];
      if (!head.toString('latin1').startsWith('HTTP/1.1 200 ')) problems.add(head.toString('latin1', 0, 300));
      socket.resume();
    };
    // The first watches are not counted, because they load and compile code.
    for (let index = 0; index < atOnce; index += 1) await open(index);
    await sleep(settle, undefined, { signal });
    const before = memory([server.pid]).rss;
    while (sockets.length < watches + atOnce)
      await Promise.all(Array.from({ length: atOnce }, (_, index) => open(sockets.length + index)));
    await sleep(settle, undefined, { signal });
    return { watches, before, after: memory([server.pid]).rss, problems: [...problems] };
  } finally {
    for (const socket of sockets) socket.destroy();
    await server.stop();
  }
}

import { createHash } from 'node:crypto';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { once } from 'node:events';

/**
 * Runs `work` while no other process on this machine runs work with the same name. Calls `onWait` once if another
 * process holds the lock. The lock is an abstract Unix socket: the kernel releases the lock when the process that holds
 * it exits. The library proper-lockfile is not used, because it leaves its lock file after a crash.
 */
export async function withLock<T>(name: string, work: () => Promise<T>, onWait?: () => void): Promise<T> {
  const path = `\0platform-apiserver-${createHash('sha256').update(name).digest('hex')}`;
  const waiting = new Set<Socket>();
  let lock = await listen(path, waiting);
  if (lock === undefined) onWait?.();
  while (lock === undefined) {
    await waitForRelease(path);
    lock = await listen(path, waiting);
  }
  try {
    return await work();
  } finally {
    lock.close();
    for (const socket of waiting) socket.destroy();
  }
}

async function listen(path: string, waiting: Set<Socket>): Promise<Server | undefined> {
  const server = createServer((socket) => {
    waiting.add(socket);
    socket.on('error', () => undefined).on('close', () => waiting.delete(socket));
  });
  try {
    server.listen(path);
    await once(server, 'listening');
    return server;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return undefined;
    throw error;
  }
}

/** Resolves when the lock is released, or at once if it is free. */
function waitForRelease(path: string): Promise<void> {
  return new Promise((resolve) => {
    connect(path)
      .on('error', () => undefined)
      .on('close', () => setTimeout(resolve, 20))
      .resume();
  });
}

import { expect } from '@jest/globals';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** A connection on which the test sends its own bytes, with all received bytes. */
export interface Talk {
  readonly socket: Socket;
  readonly received: () => string;
  readonly closed: Promise<unknown>;
  /** Resolves when the received text ends with `end`. */
  readonly expectUntil: (end: string) => Promise<void>;
}

export function talkOver(socket: Socket, bytes: string): Talk {
  let received = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => (received += chunk));
  socket.on('error', () => undefined);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write(bytes, 'latin1');
  const expectUntil = async (end: string): Promise<void> => {
    while (!received.endsWith(end) && !socket.destroyed) await sleep(5);
    expect(received.slice(-end.length)).toBe(end);
  };
  return { socket, received: () => received, closed, expectUntil };
}

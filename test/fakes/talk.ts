import { expect } from '@jest/globals';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Bytes of the test's choice, and what is said to them. */
export interface Talk {
  readonly socket: Socket;
  readonly told: () => string;
  readonly closed: Promise<unknown>;
  /** Resolves when that has come. */
  readonly expectUntil: (end: string) => Promise<void>;
}

export function talkOver(socket: Socket, bytes: string): Talk {
  let told = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => (told += chunk));
  socket.on('error', () => undefined);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write(bytes, 'latin1');
  const expectUntil = async (end: string): Promise<void> => {
    while (!told.endsWith(end) && !socket.destroyed) await sleep(5);
    expect(told.slice(-end.length)).toBe(end);
  };
  return { socket, told: () => told, closed, expectUntil };
}

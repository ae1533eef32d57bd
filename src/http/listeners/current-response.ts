import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** Returns the response that node:http is writing to the connection. Node has no public API for it. */
export function currentResponse(socket: Duplex): ServerResponse | undefined {
  const { _httpMessage: response } = socket as Duplex & { _httpMessage?: ServerResponse | null };
  return response ?? undefined;
}

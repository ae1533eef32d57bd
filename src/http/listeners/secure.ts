import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';

/** Whether a request came over TLS: HTTP/2 is spoken over that alone. */
export const isSecure = ({ httpVersionMajor, socket }: Pick<IncomingMessage, 'httpVersionMajor' | 'socket'>): boolean =>
  httpVersionMajor >= 2 || (socket as Partial<TLSSocket>).encrypted === true;

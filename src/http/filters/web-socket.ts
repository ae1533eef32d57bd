import { badRequest } from '../../runtime/errors.ts';
import type { RequestFilter } from '../exchange.ts';
import { checkHandshake, isHandshake } from '../listeners/web-socket.ts';

/** Comes last: who may not ask is told that first. */
export const webSocket: RequestFilter = ({ req, res, info, isProxied }) => {
  if (!isHandshake(res) || isProxied) return;
  if (info.verb !== 'watch') throw badRequest('a WebSocket carries a watch and nothing else: ask with watch=true');
  checkHandshake(req);
};

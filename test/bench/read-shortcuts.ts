/** Shortcuts for repeated reads. */
import type { Request, Response } from 'express';
import { queriesOf } from '../../src/apimachinery/list/query.ts';
import { gatewayAuthenticator } from '../../src/auth/authenticators/strategies.ts';
import type { UserInfo } from '../../src/auth/user.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import { routing } from '../../src/http/filters/routing.ts';
import { memoizedParser } from '../../src/http/request/parameters.ts';
import { RequestTarget } from '../../src/http/request-target.ts';
import type { Route } from '../../src/http/route.ts';
import { nodes } from '../../src/resources/kinds/index.ts';
import type { Compared } from './shortcuts.ts';

const page = '/kapis/resources.platform.io/v1alpha3/nodes?limit=10&page=3&sortBy=name';

const exchange = (method: string): Exchange =>
  ({ req: { method, url: page }, res: {} as Response, target: new RequestTarget(page) }) as unknown as Exchange;

export function repeatedTarget(routes: readonly Route[]): Compared {
  const route = routing(routes, undefined);
  return {
    name: 'the routing of a repeated GET',
    min: 2,
    perGet: 1,
    short: () => route(exchange('GET')),
    // The results for HEAD are not cached.
    plain: () => route(exchange('HEAD')),
  };
}

export function repeatedQuery(): Compared {
  const { list } = queriesOf(nodes);
  const { query } = new RequestTarget(page);
  const parse = memoizedParser(list);
  return {
    name: 'the list query of a repeated GET',
    min: 5,
    short: () => parse(query),
    plain: () => list.parse(query),
  };
}

export function knownBearer(user: UserInfo): Compared {
  const token = 'x'.repeat(700);
  const request = { headers: { authorization: `Bearer ${token}` }, rawHeaders: [] } as unknown as Request;
  const known = gatewayAuthenticator([Object.assign(async () => user, { known: () => user })]);
  const unknown = gatewayAuthenticator([async () => user]);
  return {
    name: 'a known token without passport',
    min: 1.3,
    perGet: 1,
    short: () => known(request, '192.0.2.7'),
    plain: () => unknown(request, '192.0.2.7'),
  };
}

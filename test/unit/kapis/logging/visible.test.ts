import { expect, test } from '@jest/globals';
import { StatusError } from '../../../../src/errors.ts';
import { demandSame, type LogAccess, type VisibleLogs } from '../../../../src/kapis/logging/visible.ts';

const user = { username: 'bob', groups: [], uid: '', extra: {}, via: 'token' } as const;
const context = { user, signal: new AbortController().signal };
const everything = { namespaces: [], keywords: { namespace: [], workload: [], pod: [], container: [], log: [] } };
const never = (): never => {
  throw new Error('nobody asks for namespaces');
};

/** Of whom may see everything, or nothing. */
const access = (allowed: boolean): LogAccess => ({
  authorizer: { authorize: async () => ({ allowed, reason: '' }) },
  granted: { of: () => [], hasSynced: () => true },
  catalogue: { find: never, use: never },
});

async function codeOf(allowed: boolean, before: VisibleLogs): Promise<number> {
  const error: unknown = await demandSame(access(allowed), context, everything, before).catch((why: unknown) => why);
  if (error !== undefined && !(error instanceof StatusError)) throw error;
  return error === undefined ? 200 : error.code;
}

test.each<[string, VisibleLogs, boolean, number]>([
  ['everything is everything', undefined, true, 200],
  ['nothing is nothing', new Map(), false, 200],
  ['nothing was everything', undefined, false, 403],
  ['nothing was something', new Map([['shop', 5]]), false, 403],
  ['everything was nothing', new Map(), true, 410],
  ['everything was something', new Map([['shop', 5]]), true, 410],
])('where %s', async (_what, before, allowed, code) => {
  expect(await codeOf(allowed, before)).toBe(code);
});

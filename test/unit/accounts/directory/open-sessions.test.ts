import { beforeEach, expect, test } from '@jest/globals';
import type { Account } from '../../../../src/accounts/directory/account.ts';
import type { Directory } from '../../../../src/accounts/directory/directory.ts';
import { loginOf, loginsOf } from '../../../../src/accounts/directory/subjects.ts';
import type { Session } from '../../../../src/tokens/sessions/session.ts';
import type { Sessions } from '../../../../src/tokens/sessions/sessions.ts';

const account = { uid: 'alice', credentialID: 'now' } as Account;
let all: Session[];
beforeEach(() => {
  all = [];
});

/** Session of alice, created on this day in January. */
function add(name: string, day: number, credentialID = 'now', userUID = 'alice'): void {
  const spec = { userUID, credentialID, createdAt: `2026-01-0${day}T00:00:00.000Z` };
  all.push({ metadata: { name }, spec } as Session);
}

const parts = {
  sessions: {
    ofUser: (uid: string) => all.filter(({ spec }) => spec.userUID === uid),
    active: async (sid: string) => all.find(({ metadata }) => metadata.name === sid),
  } as unknown as Sessions,
  directory: {} as Directory,
};

const names = (): string[] => loginsOf(account, parts).map(({ metadata }) => metadata.name);

test.each([[[1, 2, 3]], [[3, 2, 1]], [[2, 3, 1]], [[1, 3, 2]]])(
  'loginsOf() sorts logins of the days %j from newest to oldest',
  (days) => {
    for (const day of days) add(`day ${day}`, day);
    expect(names()).toEqual(['day 3', 'day 2', 'day 1']);
  },
);

test('the logins of an account include no session of another user or from before the last password change', async () => {
  add('good', 1);
  add('changed', 2, 'before');
  add('other', 3, 'now', 'bob');
  expect(names()).toEqual(['good']);
  const found = await Promise.all(['good', 'changed', 'other', 'none'].map((sid) => loginOf(account, sid, parts)));
  expect(found.map((session) => session?.metadata.name)).toEqual(['good', undefined, undefined, undefined]);
});

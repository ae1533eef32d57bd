import { expect, test } from '@jest/globals';
import type { UserInfo } from '../../../src/auth/user.ts';
import { callerOf } from '../../../src/gateway/proxy.ts';
import type { RequestContext } from '../../../src/http/route.ts';
import { impersonationHeaders } from '../../../src/cluster/client/impersonation.ts';

const headersOf = (user: UserInfo, impersonated?: UserInfo): object =>
  impersonationHeaders(callerOf({ user, ...(impersonated === undefined ? {} : { impersonated }) } as RequestContext));

const names: readonly Pick<UserInfo, 'username' | 'groups'>[] = [
  { username: 'system:admin', groups: [] },
  { username: 'system:serviceaccount:kube-system:default', groups: [] },
  { username: 'anna', groups: ['system:masters'] },
];

test.each(names)(
  'the gateway forwards requests of the user %j only if kube-apiserver verified the identity',
  (name) => {
    expect(() => headersOf({ ...name, via: 'token' })).toThrow(expect.objectContaining({ code: 403 }));
    for (const via of ['token-review', 'request-header'] as const)
      expect(headersOf({ ...name, via })).toHaveProperty('impersonate-user', name.username);
  },
);

test.each(names)(
  'the gateway does not forward a request of a verified caller who impersonates the unverified user %j',
  (name) => {
    const caller: UserInfo = { username: 'system:admin', groups: ['system:masters'], via: 'token-review' };
    expect(() => headersOf(caller, { ...name, via: 'token' })).toThrow(expect.objectContaining({ code: 403 }));
  },
);

test('the gateway rejects an anonymous request with 401', () => {
  expect(() => callerOf({ user: undefined } as RequestContext)).toThrow(expect.objectContaining({ code: 401 }));
});

test('the gateway uses the same identity object for all requests of a user, since it is the cache key of the impersonation headers', () => {
  const context = { user: { username: 'anna', groups: ['dev'], via: 'token' } } as unknown as RequestContext;
  expect(callerOf(context)).toBe(callerOf({ ...context }));
});

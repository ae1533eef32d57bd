import { expect, test } from '@jest/globals';
import { PasswordStore } from '../../../src/accounts/password-store.ts';
import { KubeError, unreachable } from '../../../src/kube/kube-error.ts';
import { createLogger } from '../../../src/logger.ts';

type Options = ConstructorParameters<typeof PasswordStore>[0];
type Changed = Parameters<PasswordStore['change']>[0];

/** A cluster that answers each write so. */
const storeOver = (failure: Error): PasswordStore =>
  new PasswordStore({
    client: { json: () => Promise.reject(failure) },
    namespace: 'platform-system',
    directory: { configured: () => undefined } as unknown as Options['directory'],
    passwords: { hash: () => Promise.resolve('hash') } as unknown as Options['passwords'],
    log: createLogger({ silent: true }),
  });
const bob = { username: 'bob', uid: 'u', passwordRef: { name: 'a', key: 'b' } } as Changed;

test.each([
  ['no answer', unreachable(new Error('reset'))],
  ['an answer that came too late', new KubeError(504, {})],
  ['an error', new KubeError(500, {})],
])('a password whose write got %s may be set all the same, which is said', async (_, failure) => {
  await expect(storeOver(failure).change(bob, 'x', true)).rejects.toMatchObject({
    code: 503,
    message: expect.stringContaining('may be the new one'),
    cause: failure,
  });
});

test('a password whose write was refused is not', async () => {
  const failure = new KubeError(403, { message: 'no' });
  await expect(storeOver(failure).change(bob, 'x', true)).rejects.toBe(failure);
});

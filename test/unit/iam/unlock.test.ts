import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { rightPassword } from '../../labs/accounts.ts';
import { createLab, type Lab } from '../../labs/iam.ts';

let lab: Lab;
let bob: string;
let carol: string;
beforeEach(async () => {
  lab = await createLab();
  for (const name of ['bob', 'carol']) await lab.putUser(name);
  [bob, carol] = [await lab.login('bob'), await lab.login('carol')];
  for (let attempt = 0; attempt < 5; attempt += 1) await lab.loginResponse('bob', 'wrong');
});
afterEach(() => lab.stop());

test('a user with the right to unlock users can unlock another user, and the effect reaches every replica', async () => {
  expect(await lab.loginResponse('bob', rightPassword)).toMatchObject({ status: 429 });
  lab.rights.set('carol', ['create users/unlock bob', 'create users/unlock nobody', 'create users/unlock alice']);
  expect(await lab.call(carol, 'POST', 'users/bob/unlock')).toMatchObject({ status: 200 });
  expect(await lab.loginResponse('bob', rightPassword)).toMatchObject({ status: 200 });
  expect(await lab.call(carol, 'POST', 'users/nobody/unlock')).toMatchObject({ status: 404 });
  expect(await lab.call(carol, 'POST', 'users/alice/unlock')).toMatchObject({ status: 403 });
  expect(await lab.call(bob, 'GET', 'whoami')).toMatchObject({ status: 200 });
});

test('users without the right to unlock users cannot unlock anyone, including themselves', async () => {
  for (const token of [bob, carol])
    expect(await lab.call(token, 'POST', 'users/bob/unlock')).toMatchObject({ status: 403 });
  expect(await lab.loginResponse('bob', rightPassword)).toMatchObject({ status: 429 });
});

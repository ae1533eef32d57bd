/** Adds configured users with alice's password for the duration of a test file. */
import { configure } from './configure.ts';
import { login } from './login.ts';
import { passwords } from './people.ts';

/** Adds users with their groups, and returns a function that removes them. */
export const addUsers = (users: Readonly<Record<string, readonly string[]>>): Promise<() => Promise<void>> =>
  configure(({ authentication }) => {
    const alice = authentication.users.find(({ username }) => username === 'alice');
    for (const [username, groups] of Object.entries(users))
      authentication.users.push({ username, groups, passwordHash: alice?.['passwordHash'] });
  });

export const tokenOf = async (username: string): Promise<string> =>
  (await login(username, undefined, passwords.alice)).access_token;

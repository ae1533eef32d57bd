/** Creates the Users and Sessions of a large company as kube-apiserver stores them. */
import { createHash } from 'node:crypto';
import { iamAPIVersion, iamGroup } from '../../src/config/names.ts';
import type { User } from '../../src/accounts/directory/users.ts';
import type { Session } from '../../src/tokens/sessions/session.ts';
import { release } from '../../hack/run/chart.ts';
import { managedFields } from './managed-fields.ts';

/** Number of clients with sessions, in addition to the built-in clients. */
export const clients = 500;
export const clientName = (index: number): string => `client-${index % clients}`;
const groups = 1_000;
const userAgents = [
  'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36',
  'platform-cli/3.0.0',
];
const created = Date.parse('2026-01-01T00:00:00Z');
/** Time of the last use and of the expiry. The objects are kept for later runs, in which the sessions must be active. */
const future = Date.parse('2100-01-01T00:00:00Z');

const hexOf = (text: string): string => createHash('sha256').update(text).digest('hex');
const time = (at: number): string => new Date(at).toISOString();
const wholeSeconds = (at: number): string => time(at).replace(/\.\d+/, '');
const uidOf = (text: string): string =>
  hexOf(text).replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-4$3-8$4-$5');

function stored(kind: string, name: string, namespace: string | undefined, parts: object): object {
  const creationTimestamp = wholeSeconds(created);
  const written = { manager: 'platform-apiserver', time: creationTimestamp };
  return {
    apiVersion: iamAPIVersion,
    kind,
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      uid: uidOf(`${kind}/${name}`),
      generation: 1,
      creationTimestamp,
      managedFields: [managedFields(parts, written)],
    },
    ...parts,
  };
}

const userName = (index: number): string => `user-${index}`;

function user(index: number): object {
  const name = userName(index);
  const parts: Pick<User, 'spec' | 'status'> = {
    spec: {
      displayName: `User ${index} of the company`,
      email: `${name}@example.com`,
      groups: [`team-${index % groups}`, 'everyone'],
      state: 'Active',
    },
    status: {
      conditions: [
        {
          type: 'Accepted',
          status: 'True',
          reason: 'Accepted',
          message: 'the user is allowed to log in while Active, with a password or through a linked identity provider',
          observedGeneration: 1,
          lastTransitionTime: wholeSeconds(created),
        },
      ],
    },
  };
  return stored('User', name, undefined, parts);
}

function session(index: number, users: number): [name: string, object: object] {
  const name = hexOf(`session ${index}`).slice(0, 32);
  const owner = userName(index % users);
  const parts: Pick<Session, 'spec' | 'status'> = {
    spec: {
      userName: owner,
      userUID: uidOf(`User/${owner}`),
      clientID: clientName(index),
      scope: 'openid profile email groups offline_access',
      credentialID: hexOf(owner).slice(0, 32),
      sourceIP: `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`,
      userAgent: userAgents[index % userAgents.length] ?? '',
      createdAt: time(created + index),
      expiresAt: time(future + index),
    },
    status: { phase: 'Active', currentHash: hexOf(name), lastUsedAt: time(future + index) },
  };
  return [name, stored('Session', name, release.namespace, parts)];
}

/** Users and their sessions, by the keys that kube-apiserver uses. */
export function* accountObjects(users: number, sessions: number): Generator<[key: string, object: object]> {
  for (let index = 0; index < users; index += 1) yield [`/registry/${iamGroup}/users/${userName(index)}`, user(index)];
  for (let index = 0; index < sessions; index += 1) {
    const [name, object] = session(index, users);
    yield [`/registry/${iamGroup}/sessions/${release.namespace}/${name}`, object];
  }
}

/**
 * Generates random requests for resources that kube-apiserver does not serve: logs and users. SubjectAccessReviews
 * determine whether a request is allowed.
 */
import * as fc from 'fast-check';
import { aggregated, gateway } from '../http.ts';
import { namespaces } from './objects.ts';
import type { Caller, Oracle } from './oracle.ts';
import { readable, type Request } from './requests.ts';

const linesOfContainer = 3;
export const logMarker = (namespace: string): string => `line of ${namespace}`;

export const logLines = (namespace: string): { time: Date; log: string }[] =>
  Array.from({ length: linesOfContainer }, () => ({ time: new Date(), log: logMarker(namespace) }));

const nothing = { transport: 'get', allows: async () => false } as const;

const mayReadLogs = async (oracle: Oracle, caller: Caller, namespace: string): Promise<boolean> =>
  oracle.reviews(caller, { verb: 'get', group: '', resource: 'pods', subresource: 'log', namespace });

const logs = fc
  .record({
    user: fc.nat(9),
    prefix: fc.constantFrom(
      `${gateway()}/kapis/logging.platform.io`,
      `${gateway()}/kapis/tenant.platform.io`,
      `${aggregated()}/apis/logging.platform.io`,
    ),
    within: fc.subarray([...namespaces]),
    operation: fc.constantFrom('query', 'statistics', 'histogram', 'export'),
  })
  .map(({ user, prefix, within, operation }): Request => {
    const scope = within.length === 0 ? 'namespace_query=rights-' : `namespaces=${within.join(',')}`;
    const chosen = within.length === 0 ? namespaces : within;
    return {
      ...nothing,
      user,
      ...(operation === 'export' ? { accept: 'text/plain' } : {}),
      url: `${prefix}/v1alpha2/logs?operation=${operation}&start_time=${Math.floor(Date.now() / 1_000) - 3_600}&size=100&${scope}`,
      finds: async (oracle, caller, text) => {
        const problems: string[] = [];
        for (const name of namespaces) {
          const isAllowed = chosen.includes(name) && (await mayReadLogs(oracle, caller, name));
          if (text.includes(logMarker(name)) && !isAllowed) problems.push(`returns logs of ${name}`);
          if (operation === 'query' && !text.includes(logMarker(name)) && isAllowed)
            problems.push(`returns no logs of ${name}`);
        }
        return problems;
      },
    };
  });

const iam = `${gateway()}/kapis/iam.platform.io/v1alpha2/users`;

const users = (usernames: readonly string[]): fc.Arbitrary<Request> =>
  fc
    .record({
      user: fc.nat(9),
      other: fc.constantFrom(...usernames),
      path: fc.constantFrom('', '/NAME', '/NAME/sessions'),
    })
    .map(({ user, other, path }): Request => ({
      ...nothing,
      user,
      url: `${iam}${path.replace('NAME', other)}`,
      isAllowed: async (oracle, caller) =>
        (path !== '' && caller.username === other) ||
        oracle.reviews(caller, {
          verb: path === '' ? 'list' : 'get',
          group: 'iam.platform.io',
          resource: 'users',
          ...(path === '' ? {} : { name: other }),
          ...(path.endsWith('sessions') ? { subresource: 'sessions' } : {}),
        }),
    }));

export const services = (usernames: readonly string[]): fc.Arbitrary<Request> =>
  readable({ weight: 1, arbitrary: logs }, { weight: 1, arbitrary: users(usernames) });

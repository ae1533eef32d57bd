import { describe, expect, test } from '@jest/globals';
import type { Audited } from '../../../src/audit/event.ts';
import { evaluatePolicy } from '../../../src/audit/policy.ts';
import { audit } from '../../../src/config/audit.ts';
import { requestInfo } from '../../../src/http/filters/request-info.ts';

const request = (method: string, url: string, user?: Audited['user']): Audited => {
  const [path = '', search = ''] = url.split('?');
  const info = requestInfo(method, path, new URLSearchParams(search));
  return { auditID: 'an-id', shownURL: url, info, sourceIP: '192.0.2.1', userAgent: '', user };
};

const alice = { username: 'alice', groups: ['readers', 'system:authenticated'] };

const levelOf = (rules: readonly object[], audited: Audited): string =>
  evaluatePolicy(audit.parse({ policy: { rules } }).policy, audited).level;

test.each([{ users: ['system:anonymous'] }, { userGroups: ['system:unauthenticated'] }])(
  'an audit policy rule matches anonymous requests by the user and group names of Kubernetes: %j',
  (rule) => {
    expect(levelOf([{ level: 'Metadata', ...rule }], request('GET', '/metrics'))).toBe('Metadata');
    expect(levelOf([{ level: 'Metadata', ...rule }], request('GET', '/metrics', alice))).toBe('None');
  },
);

describe('an audit policy rule', () => {
  const pods = '/api/v1/namespaces/default/pods';

  test.each<[string, object, string, string]>([
    ['matches', {}, 'GET', pods],
    ['matches', { users: ['alice'] }, 'GET', pods],
    ['does not match', { users: ['bob'] }, 'GET', pods],
    ['matches', { userGroups: ['writers', 'readers'] }, 'GET', pods],
    ['does not match', { userGroups: ['writers'] }, 'GET', pods],
    ['matches', { verbs: ['list'] }, 'GET', pods],
    ['matches', { verbs: ['watch'] }, 'GET', `${pods}?watch=1`],
    ['does not match', { verbs: ['get'] }, 'GET', pods],
    ['matches', { namespaces: ['default'] }, 'GET', pods],
    ['does not match', { namespaces: ['kube-system'] }, 'GET', pods],
    ['matches', { namespaces: [''] }, 'GET', '/api/v1/nodes'],
    ['does not match', { namespaces: [''] }, 'GET', pods],
    ['does not match', { namespaces: ['default'] }, 'GET', '/metrics'],
    ['matches', { resources: [{ group: '', resources: ['pods'] }] }, 'GET', pods],
    ['matches', { resources: [{ resources: ['pods'] }] }, 'GET', pods],
    ['does not match', { resources: [{ group: '', resources: ['pods'] }] }, 'GET', `${pods}/p/log`],
    ['matches', { resources: [{ group: '', resources: ['pods/log'] }] }, 'GET', `${pods}/p/log`],
    ['matches', { resources: [{ group: '', resources: ['pods/*'] }] }, 'GET', `${pods}/p/log`],
    ['matches', { resources: [{ group: '', resources: ['*/log'] }] }, 'GET', `${pods}/p/log`],
    ['does not match', { resources: [{ group: '', resources: ['*/log'] }] }, 'GET', pods],
    ['matches', { resources: [{ group: '', resources: ['*'] }] }, 'GET', `${pods}/p/log`],
    ['does not match', { resources: [{ group: 'apps' }] }, 'GET', pods],
    ['matches', { resources: [{ group: 'apps' }] }, 'GET', '/apis/apps/v1/deployments'],
    ['matches', { resources: [{ group: '', resources: ['pods'], resourceNames: ['p'] }] }, 'DELETE', `${pods}/p`],
    [
      'does not match',
      { resources: [{ group: '', resources: ['pods'], resourceNames: ['p'] }] },
      'DELETE',
      `${pods}/q`,
    ],
    [
      'matches',
      { resources: [{ group: 'resources.platform.io', resources: ['nodes'] }] },
      'GET',
      '/kapis/resources.platform.io/v1alpha3/nodes',
    ],
    ['matches', { nonResourceURLs: ['/oauth/token'] }, 'POST', '/oauth/token'],
    ['matches', { nonResourceURLs: ['/oauth*'] }, 'POST', '/oauth/token'],
    ['matches', { nonResourceURLs: ['*'] }, 'GET', '/metrics'],
    ['does not match', { nonResourceURLs: ['*'] }, 'GET', pods],
    ['does not match', { nonResourceURLs: ['/oauth'] }, 'POST', '/oauth/token'],
    ['does not match', { resources: [{ group: '', resources: ['pods'] }] }, 'GET', '/metrics'],
  ])('an audit policy rule %s a request: %j and %s %s', (outcome, rule, method, url) => {
    const rules = [{ level: 'Request', ...rule }, { level: 'Metadata' }];
    expect(levelOf(rules, request(method, url, alice))).toBe(outcome === 'matches' ? 'Request' : 'Metadata');
  });

  test('the first audit policy rule that matches a request applies', () => {
    const rules = [{ level: 'None', users: ['alice'] }, { level: 'RequestResponse' }];
    expect(levelOf(rules, request('GET', pods, alice))).toBe('None');
    expect(levelOf(rules, request('GET', pods))).toBe('RequestResponse');
  });

  test('no audit event is written if no rule matches', () => {
    expect(levelOf([{ level: 'Metadata', users: ['bob'] }], request('GET', pods, alice))).toBe('None');
  });

  test('an audit policy rule omits stages in addition to the stages that the policy omits, and overrides omitManagedFields', () => {
    const { policy } = audit.parse({
      policy: {
        rules: [{ level: 'Metadata', omitStages: ['ResponseStarted'], omitManagedFields: false }],
        omitStages: ['RequestReceived'],
        omitManagedFields: true,
      },
    });
    const verdict = evaluatePolicy(policy, request('GET', pods, alice));
    expect([...verdict.omitStages].toSorted()).toEqual(['RequestReceived', 'ResponseStarted']);
    expect(verdict.omitManagedFields).toBe(false);
  });
});

describe('one audit level for all requests', () => {
  const { policy } = audit.parse({ policy: { level: 'Request' } });

  test.each([
    ['/livez', 'None'],
    ['/readyz?verbose', 'None'],
    ['/healthz/ping', 'None'],
    ['/oauth/token', 'Request'],
    ['/api/v1/nodes', 'Request'],
  ])('with one audit level for all requests, a request for %s has the level %s', (url, level) =>
    expect(evaluatePolicy(policy, request('GET', url)).level).toBe(level),
  );

  test('with one audit level for all requests, no event has the stage RequestReceived', () => {
    expect(evaluatePolicy(policy, request('GET', '/')).omitStages).toEqual(['RequestReceived']);
  });

  test('without a configured audit level, all requests have the level Metadata', () => {
    expect(audit.parse({}).policy.rules.at(-1)).toMatchObject({ level: 'Metadata' });
  });
});

describe('the audit configuration', () => {
  test.each<[object, string]>([
    [{ policy: { level: 'Everything' } }, 'policy.level'],
    [{ policy: { level: 'None', rules: [{ level: 'None' }] } }, 'policy.level'],
    [{ policy: { rules: [] } }, 'policy.rules'],
    [{ policy: { rules: [{}] } }, 'policy.rules.0.level'],
    [{ policy: { rules: [{ level: 'None', user: ['x'] }] } }, 'policy.rules.0'],
    [{ policy: { apiVersion: 'audit.k8s.io/v1beta1' } }, 'policy.apiVersion'],
    [{ log: { path: 'audit.log' } }, 'log.path'],
    [{ log: { path: '/a', maxSize: 'much' } }, 'log.maxSize'],
    [{ webhook: {} }, 'webhook.url'],
    [{ webhook: { url: 'ftp://x' } }, 'webhook.url'],
    [{ webhook: { url: 'https://x', caCertificate: 'none' } }, 'webhook.caCertificate'],
  ])('the audit configuration %j is rejected with the path %s', (value, path) => {
    const result = audit.safeParse(value);
    expect(result.error?.issues.map((issue) => issue.path.join('.'))).toEqual([path]);
  });

  test('the audit configuration accepts a policy file of Kubernetes unchanged', () => {
    const { policy } = audit.parse({
      policy: {
        apiVersion: 'audit.k8s.io/v1',
        kind: 'Policy',
        omitStages: ['RequestReceived'],
        rules: [
          {
            level: 'None',
            users: ['system:kube-proxy'],
            verbs: ['watch'],
            resources: [{ group: '', resources: ['endpoints'] }],
          },
          { level: 'Metadata', resources: [{ group: '', resources: ['secrets', 'configmaps'] }] },
          { level: 'RequestResponse', omitStages: ['RequestReceived'] },
        ],
      },
    });
    expect(policy.rules.map(({ level }) => level)).toEqual(['None', 'Metadata', 'RequestResponse']);
  });
});

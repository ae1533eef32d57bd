import { expect, test } from '@jest/globals';
import { parseConfiguration, formatProblem } from '../../../src/config/parse.ts';
import { secretsIn } from '../../../src/accounts/directory/configuration-warnings.ts';

const parse = (logging: object) =>
  parseConfiguration(
    JSON.stringify({
      apiVersion: 'config.platform.io/v1alpha1',
      kind: 'PlatformConfiguration',
      authentication: { issuer: 'https://platform.example' },
      logging,
    }),
  );

const problems = (logging: object): string[] => {
  const parsed = parse(logging);
  return parsed.ok ? [] : parsed.problems.map(formatProblem);
};

const ref = { name: 'log-store', key: 'password' };

test.each([
  ['opensearch', { indexPrefix: 'ks-whizard-logging', timeField: '@timestamp' }],
  ['elasticsearch', { indexPrefix: 'ks-logstash-log', timeField: '@timestamp' }],
  ['loki', { labels: { namespace: 'namespace', pod: 'pod', container: 'container' } }],
])('%s needs to be told no more than where it is', (store, defaults) => {
  const parsed = parse({ store, [store]: { url: 'https://logs.example:9200/below' } });
  expect(parsed).toMatchObject({
    ok: true,
    value: { logging: { store, [store]: { url: 'https://logs.example:9200/below', ...defaults } } },
  });
});

test.each<[string, object, string]>([
  ['an unknown store', { store: 'splunk' }, 'logging.store: '],
  ['no section', { store: 'opensearch' }, 'logging.opensearch: is missing: it says where the store "opensearch" is'],
  ['no URL', { store: 'opensearch', opensearch: {} }, 'logging.opensearch.url: '],
  ['another scheme', { opensearch: { url: 'ftp://logs' } }, 'logging.opensearch.url: must be an http or https URL'],
  ['a password in the URL', { elasticsearch: { url: 'https://a:b@logs' } }, 'logging.elasticsearch.url: '],
  ['a pattern', { opensearch: { url: 'https://logs', indexPrefix: '*' } }, 'logging.opensearch.indexPrefix: '],
  [
    'two credentials',
    { elasticsearch: { url: 'https://logs', tokenRef: ref, basicAuth: { username: 'a', passwordRef: ref } } },
    'logging.elasticsearch: must not have both of basicAuth and tokenRef',
  ],
  ['what is no tenant', { loki: { url: 'https://logs', tenant: 'a b' } }, 'logging.loki.tenant: '],
  ['what is no label', { loki: { url: 'https://logs', labels: { pod: 'k8s.pod' } } }, 'logging.loki.labels.pod: '],
  ['what ends a text', { loki: { url: 'https://logs', textField: 'a"]' } }, 'logging.loki.textField: '],
  [
    'a password',
    { elasticsearch: { url: 'https://logs', basicAuth: { username: 'a', password: 'b' } } },
    'logging.elasticsearch.basicAuth',
  ],
  [
    'no CA',
    { elasticsearch: { url: 'https://logs', caCertificate: 'x' } },
    'logging.elasticsearch.caCertificate: must be the certificate',
  ],
])('%s is refused', (_what, logging, problem) => {
  expect(problems(logging).some((one) => one.startsWith(problem))).toBe(true);
});

test('the Secrets of the store in use are followed', () => {
  const section = { url: 'https://logs', basicAuth: { username: 'reader', passwordRef: ref } };
  const parsed = parse({
    store: 'opensearch',
    opensearch: section,
    elasticsearch: { url: 'https://other', tokenRef: { name: 'b', key: 'c' } },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  expect([...secretsIn(parsed.value)]).toEqual(['log-store']);
});

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
])('the configuration of the log store %s requires only its URL', (store, defaults) => {
  const parsed = parse({ store, [store]: { url: 'https://logs.example:9200/below' } });
  expect(parsed).toMatchObject({
    ok: true,
    value: { logging: { store, [store]: { url: 'https://logs.example:9200/below', ...defaults } } },
  });
});

test.each<[string, object, string]>([
  ['an unknown store', { store: 'splunk' }, 'logging.store: '],
  ['a missing section', { store: 'opensearch' }, 'logging.opensearch: is required for the log store "opensearch"'],
  ['a missing URL', { store: 'opensearch', opensearch: {} }, 'logging.opensearch.url: '],
  [
    'a URL that is not http or https',
    { opensearch: { url: 'ftp://logs' } },
    'logging.opensearch.url: must be an http or https URL',
  ],
  ['a password in the URL', { elasticsearch: { url: 'https://a:b@logs' } }, 'logging.elasticsearch.url: '],
  ['a wildcard pattern', { opensearch: { url: 'https://logs', indexPrefix: '*' } }, 'logging.opensearch.indexPrefix: '],
  [
    'two credentials',
    { elasticsearch: { url: 'https://logs', tokenRef: ref, basicAuth: { username: 'a', passwordRef: ref } } },
    'logging.elasticsearch: must not have both basicAuth and tokenRef',
  ],
  ['an invalid tenant', { loki: { url: 'https://logs', tenant: 'a b' } }, 'logging.loki.tenant: '],
  ['an invalid label', { loki: { url: 'https://logs', labels: { pod: 'k8s.pod' } } }, 'logging.loki.labels.pod: '],
  ['a field with a quote', { loki: { url: 'https://logs', textField: 'a"]' } }, 'logging.loki.textField: '],
  [
    'a password in plain text',
    { elasticsearch: { url: 'https://logs', basicAuth: { username: 'a', password: 'b' } } },
    'logging.elasticsearch.basicAuth',
  ],
  [
    'an invalid CA',
    { elasticsearch: { url: 'https://logs', caCertificate: 'x' } },
    'logging.elasticsearch.caCertificate: must be a CA certificate',
  ],
])('a log store configuration with %s is rejected', (_what, logging, problem) => {
  expect(problems(logging).some((one) => one.startsWith(problem))).toBe(true);
});

test('the Secrets of the configured log store are watched', () => {
  const section = { url: 'https://logs', basicAuth: { username: 'reader', passwordRef: ref } };
  const parsed = parse({
    store: 'opensearch',
    opensearch: section,
    elasticsearch: { url: 'https://other', tokenRef: { name: 'b', key: 'c' } },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  expect([...secretsIn(parsed.value)]).toEqual(['log-store']);
});

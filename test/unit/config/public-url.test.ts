import { expect, test } from '@jest/globals';
import { publicURL } from '../../../src/config/public-url.ts';
import { parseConfiguration } from '../../../src/config/parse.ts';

function urlOf(issuer: string, externalURL = ''): string | undefined {
  const parsed = parseConfiguration(
    JSON.stringify({
      apiVersion: 'config.platform.io/v1alpha1',
      kind: 'PlatformConfiguration',
      authentication: { issuer },
      gateway: { externalURL },
    }),
  );
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return publicURL(parsed.value);
}

test.each([
  ['https://platform.example', '', 'https://platform.example'],
  ['https://platform.example/base', '', 'https://platform.example/base'],
  ['https://platform-apiserver.platform-system.svc', 'https://127.0.0.1:9443/', 'https://127.0.0.1:9443'],
  ['https://platform.example', 'https://other.example:8443', 'https://other.example:8443'],
  ['https://platform-apiserver.platform-system.svc', '', undefined],
  ['https://platform-apiserver.platform-system.svc.cluster.local', '', undefined],
])('the public URL for the issuer %s and the externalURL %j is %s', (issuer, externalURL, expected) => {
  expect(urlOf(issuer, externalURL)).toBe(expected);
});

import { describe, expect, test } from '@jest/globals';
import { sendRequest } from '../../../fakes/request.ts';
import { configuration } from '../../../fakes/configuration.ts';
import { face, resourcePath } from '../../../labs/http.ts';

const year = { externalURL: 'https://platform.example', strictTransportSecurity: '8760h' };

async function policy(gateway: Readonly<Record<string, unknown>>, host: string, secure = true): Promise<unknown> {
  const configured = configuration({ gateway }).gateway;
  const { app } = face({ strictTransport: () => configured });
  const { headers } = await sendRequest(app, resourcePath, { secure, headers: { host } });
  return headers['strict-transport-security'];
}

// evidence: strict-transport-security
describe('Strict-Transport-Security', () => {
  test.each(['platform.example', 'Platform.Example', 'platform.example:443', 'platform.example:6443'])(
    'Strict-Transport-Security is sent over TLS to the host of externalURL: %s',
    async (host) => {
      expect(await policy(year, host)).toBe('max-age=31536000');
    },
  );

  test.each([
    'localhost',
    '127.0.0.1',
    'platform-apiserver.platform-system.svc',
    'a.platform.example',
    'platform.example.evil.example',
    'a b',
  ])('Strict-Transport-Security is not sent to another host: %s', async (host) => {
    expect(await policy(year, host)).toBeUndefined();
  });

  test('Strict-Transport-Security is sent only to the host of the current externalURL, also after a configuration change', async () => {
    let configured = configuration({ gateway: year }).gateway;
    const { app } = face({ strictTransport: () => configured });
    const sentTo = async (host: string): Promise<boolean> =>
      'strict-transport-security' in
      (await sendRequest(app, resourcePath, { secure: true, headers: { host } })).headers;
    expect(await sentTo('platform.example')).toBe(true);
    expect(await sentTo('platform.example')).toBe(true);
    expect(await sentTo('other.example')).toBe(false);
    expect(await sentTo('platform.example')).toBe(true);
    configured = configuration({ gateway: { ...year, externalURL: 'https://other.example' } }).gateway;
    expect(await sentTo('platform.example')).toBe(false);
    expect(await sentTo('other.example')).toBe(true);
  });

  test('Strict-Transport-Security is not sent over plain HTTP', async () => {
    expect(await policy(year, 'platform.example', false)).toBeUndefined();
  });

  test('Strict-Transport-Security is not sent unless it is configured', async () => {
    expect(await policy({ externalURL: 'https://platform.example' }, 'platform.example')).toBeUndefined();
  });

  test('Strict-Transport-Security has a max-age of whole seconds, rounded up', async () => {
    const gateway = { externalURL: 'https://platform.example:6443', strictTransportSecurity: '1ms' };
    expect(await policy(gateway, 'platform.example')).toBe('max-age=1');
  });

  test.each(['', 'https://192.0.2.1', 'https://[2001:db8::1]:6443', 'http://platform.example'])(
    'Strict-Transport-Security is rejected in the configuration if externalURL is %j',
    (externalURL) => {
      expect(() => configuration({ gateway: { externalURL, strictTransportSecurity: '1h' } })).toThrow(
        'gateway.strictTransportSecurity: requires externalURL with a host name',
      );
    },
  );
});

import { describe, expect, test } from '@jest/globals';
import { isRegistered, canBeIntercepted, withParameters } from '../../../src/oauth/authorization-request.ts';

describe('a redirect URI', () => {
  test.each([
    ['http://127.0.0.1/callback', 'http://127.0.0.1:5000/callback'],
    ['http://127.0.0.1:80/callback', 'http://127.0.0.1/callback'],
    ['http://[::1]:1/callback', 'http://[::1]:2/callback'],
    ['http://127.0.0.1', 'http://127.0.0.1:5000'],
    ['http://127.0.0.1/', 'http://127.0.0.1:5000/'],
    ['http://127.0.0.1?a=b', 'http://127.0.0.1:5000?a=b'],
    ['com.example.app:/callback', 'com.example.app:/callback'],
  ])('a redirect URI registered as %s matches %s', (registered, given) => {
    expect(isRegistered(['https://other.example/', registered], given)).toBe(true);
  });

  test.each([
    ['http://127.0.0.1/callback', 'http://127.0.0.1:5000/callback/x'],
    ['http://127.0.0.1/callback', 'http://127.0.0.1:5000/callbackx'],
    ['http://127.0.0.1/callback', 'http://127.0.0.1:5000/'],
    ['http://127.0.0.1/callback', 'http://[::1]/callback'],
    ['http://127.0.0.1/callback', 'https://127.0.0.1/callback'],
    ['http://127.0.0.1/callback', 'http://127.0.0.1.evil.example/callback'],
    ['http://127.0.0.1', 'http://127.0.0.1:5000@evil.example'],
    ['http://127.0.0.1', 'http://127.0.0.1:70000'],
    ['http://localhost/callback', 'http://localhost:5000/callback'],
    ['https://a.example/callback', 'https://a.example:444/callback'],
    ['https://a.example/http://127.0.0.1/x', 'https://a.example/http://127.0.0.1:5000/x'],
    ['https://a.example/callback', ''],
    ['not a URL', 'not a URL'],
  ])('a redirect URI registered as %s does not match %s', (registered, given) => {
    expect(isRegistered([registered], given)).toBe(false);
  });

  test('no redirect URI matches if the client has none registered', () => {
    expect(isRegistered([], 'https://a.example/')).toBe(false);
  });

  test('a redirect URI proves the identity of the client only if its scheme is https', () => {
    expect(canBeIntercepted('https://a.example/')).toBe(false);
    expect(canBeIntercepted('http://127.0.0.1/')).toBe(true);
    expect(canBeIntercepted('com.example.app:/https:')).toBe(true);
  });

  test.each<[string, Record<string, string | undefined>, string]>([
    ['https://a.example/x', {}, 'https://a.example/x'],
    ['https://a.example/x', { code: undefined, state: '' }, 'https://a.example/x'],
    ['https://a.example/x', { code: 'a b', state: '&' }, 'https://a.example/x?code=a+b&state=%26'],
    ['https://a.example/x?y=1', { code: 'c' }, 'https://a.example/x?y=1&code=c'],
  ])('the redirect URI %s with the parameters %j becomes %s', (uri, parameters, expected) => {
    expect(withParameters(uri, parameters)).toBe(expected);
  });
});

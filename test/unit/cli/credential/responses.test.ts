/** Validation of server responses by the credential plugin. The server can be faulty or malicious. */
import { describe, expect, test } from '@jest/globals';
import { deviceOf, tokensOf } from '../../../../src/cli/credential/responses.ts';

const now = Date.parse('2026-01-01T00:00:00Z');
const tokens = { access_token: 'a.b-c_d', refresh_token: 'r.e-f', expires_in: 7_200 };

describe('a token response', () => {
  test('a token response makes the token valid for the lifetime that the server sends, but at most for a day', () => {
    const [accessToken, refreshToken] = [tokens.access_token, tokens.refresh_token];
    expect(tokensOf(tokens, now)).toEqual({ accessToken, refreshToken, obtainedAt: now, expiresAt: now + 7_200_000 });
    for (const expires_in of [1e20, 86_401, Number.MAX_VALUE])
      expect(tokensOf({ ...tokens, expires_in }, now)?.expiresAt).toBe(now + 86_400_000);
  });

  // evidence: plugin-response-checks
  test.each<[string, object]>([
    ['no lifetime', { expires_in: undefined }],
    ['a lifetime that is a string', { expires_in: '3600' }],
    ['a lifetime of zero', { expires_in: 0 }],
    ['a negative lifetime', { expires_in: -5 }],
    ['an infinite lifetime', JSON.parse('{"expires_in":1e999}') as object],
    ['no access token', { access_token: undefined }],
    ['an empty access token', { access_token: '' }],
    ['an access token that is not a valid header value', { access_token: 'a\nb' }],
    ['an access token with a terminal control character', { access_token: 'a\u009B' }],
    ['no refresh token', { refresh_token: undefined }],
    ['a refresh token that is not a string', { refresh_token: 5 }],
    ['a refresh token with control characters', { refresh_token: 'a\u001B' }],
  ])('a token response with %s is rejected', (_, fields) => {
    expect(tokensOf({ ...tokens, ...fields }, now)).toBeUndefined();
  });
});

describe('a device authorization response', () => {
  const deviceResponse = {
    device_code: 'dc',
    user_code: 'WDJB-MJHT',
    verification_uri: 'https://a.example/oauth/device',
    verification_uri_complete: 'https://a.example/oauth/device?user_code=WDJB-MJHT',
    expires_in: 600,
    interval: 7,
  };

  test('a device authorization response is parsed', () => {
    expect(deviceOf(deviceResponse)).toEqual({
      code: 'dc',
      userCode: 'WDJB-MJHT',
      address: 'https://a.example/oauth/device?user_code=WDJB-MJHT',
      interval: 7,
      life: 600,
    });
    expect(deviceOf({ ...deviceResponse, verification_uri_complete: undefined })?.address).toBe(
      deviceResponse.verification_uri,
    );
  });

  // evidence: plugin-poll-interval
  test.each([
    [undefined, 5],
    ['x', 5],
    ['7', 5],
    [null, 5],
    [{}, 5],
    [-5, 5],
    [0, 5],
    [1e-9, 1],
    [1e20, 60],
  ])('a device authorization response with the interval %j causes a poll every %d s', (interval, expected) => {
    expect(deviceOf({ ...deviceResponse, interval })?.interval).toBe(expected);
  });

  test.each([
    [undefined, 600],
    ['x', 600],
    [-1, 600],
    [1e20, 3_600],
  ])('a device authorization response with the lifetime %j is valid for %d s', (expires_in, expected) => {
    expect(deviceOf({ ...deviceResponse, expires_in })?.life).toBe(expected);
  });

  test.each<[string, object]>([
    ['no device code', { device_code: undefined }],
    ['a number as the user code', { user_code: 5 }],
    ['no verification URI', { verification_uri: undefined, verification_uri_complete: undefined }],
    ['a file URL as the verification URI', { verification_uri_complete: 'file:///etc/passwd' }],
    ['an escape sequence in the verification URI', { verification_uri_complete: '\u001B[31mhttps://a.example/' }],
  ])('a device authorization response with %s is rejected', (_, fields) => {
    expect(deviceOf({ ...deviceResponse, ...fields })).toBeUndefined();
  });
});

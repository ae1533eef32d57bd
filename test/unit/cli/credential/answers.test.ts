/** What the plugin makes of what a server says, which may be broken or nobody's friend. */
import { describe, expect, test } from '@jest/globals';
import { deviceOf, tokensOf } from '../../../../src/cli/credential/answers.ts';

const now = Date.parse('2026-01-01T00:00:00Z');
const tokens = { access_token: 'a.b-c_d', refresh_token: 'r.e-f', expires_in: 7_200 };

describe('tokens', () => {
  test('are good for as long as the server says, but are asked for anew every day', () => {
    const [accessToken, refreshToken] = [tokens.access_token, tokens.refresh_token];
    expect(tokensOf(tokens, now)).toEqual({ accessToken, refreshToken, obtainedAt: now, expiresAt: now + 7_200_000 });
    for (const expires_in of [1e20, 86_401, Number.MAX_VALUE])
      expect(tokensOf({ ...tokens, expires_in }, now)?.expiresAt).toBe(now + 86_400_000);
  });

  // evidence: plugin-response-checks
  test.each<[string, object]>([
    ['no life', { expires_in: undefined }],
    ['a life in a text', { expires_in: '3600' }],
    ['a life that is over', { expires_in: 0 }],
    ['a negative life', { expires_in: -5 }],
    ['an endless life', JSON.parse('{"expires_in":1e999}') as object],
    ['no access token', { access_token: undefined }],
    ['an empty access token', { access_token: '' }],
    ['an access token that no header carries', { access_token: 'a\nb' }],
    ['an access token that steers terminals', { access_token: 'a\u009B' }],
    ['no refresh token', { refresh_token: undefined }],
    ['a refresh token that is no text', { refresh_token: 5 }],
    ['a refresh token of control characters', { refresh_token: 'a\u001B' }],
  ])('with %s are none', (_, fields) => {
    expect(tokensOf({ ...tokens, ...fields }, now)).toBeUndefined();
  });
});

describe('a device', () => {
  const said = {
    device_code: 'dc',
    user_code: 'WDJB-MJHT',
    verification_uri: 'https://a.example/oauth/device',
    verification_uri_complete: 'https://a.example/oauth/device?user_code=WDJB-MJHT',
    expires_in: 600,
    interval: 7,
  };

  test('is what the server says', () => {
    expect(deviceOf(said)).toEqual({
      code: 'dc',
      userCode: 'WDJB-MJHT',
      address: 'https://a.example/oauth/device?user_code=WDJB-MJHT',
      interval: 7,
      life: 600,
    });
    expect(deviceOf({ ...said, verification_uri_complete: undefined })?.address).toBe(said.verification_uri);
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
  ])('that shall ask every %j s asks every %d s', (interval, expected) => {
    expect(deviceOf({ ...said, interval })?.interval).toBe(expected);
  });

  test.each([
    [undefined, 600],
    ['x', 600],
    [-1, 600],
    [1e20, 3_600],
  ])('that may wait for %j s waits for %d s', (expires_in, expected) => {
    expect(deviceOf({ ...said, expires_in })?.life).toBe(expected);
  });

  test.each<[string, object]>([
    ['code', { device_code: undefined }],
    ['code for the user', { user_code: 5 }],
    ['address', { verification_uri: undefined, verification_uri_complete: undefined }],
    ['address but a file', { verification_uri_complete: 'file:///etc/passwd' }],
    ['address but an escape sequence', { verification_uri_complete: '\u001B[31mhttps://a.example/' }],
  ])('without %s is none', (_, fields) => {
    expect(deviceOf({ ...said, ...fields })).toBeUndefined();
  });
});

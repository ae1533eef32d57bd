import { expect, test } from '@jest/globals';
import { isWebSocketRequest, subprotocolToken } from '../../../../src/auth/authenticators/web-socket-request.ts';

type Handshake = Parameters<typeof isWebSocketRequest>[0];

const request = (headers: Handshake['headers'] = {}, more: Partial<Handshake> = {}): Handshake => ({
  method: 'GET',
  httpVersion: '1.1',
  headers: { connection: 'Upgrade', upgrade: 'websocket', ...headers },
  ...more,
});

test.each<[string, string, Handshake]>([
  ['of most browsers', 'a WebSocket handshake', request()],
  ['of Firefox', 'a WebSocket handshake', request({ connection: 'keep-alive, Upgrade' })],
  [
    'with further protocols',
    'a WebSocket handshake',
    request({ upgrade: 'h2c , WebSocket', connection: 'UPGRADE,http2-settings' }),
  ],
  ['to upgrade to another protocol', 'a plain request', request({ upgrade: 'SPDY/3.1' })],
  ['without an Upgrade header', 'a plain request', request({ upgrade: undefined })],
  ['whose Connection header does not contain Upgrade', 'a plain request', request({ connection: 'keep-alive' })],
  ['without a Connection header', 'a plain request', request({ connection: undefined })],
  ['by POST', 'a plain request', request({}, { method: 'POST' })],
  ['over HTTP/1.0', 'a plain request', request({}, { httpVersion: '1.0' })],
  ['over HTTP/2', 'a plain request', request({}, { httpVersion: '2.0' })],
])('a request %s is treated as %s', (_, outcome, handshake) => {
  expect(isWebSocketRequest(handshake)).toBe(outcome === 'a WebSocket handshake');
});

const protocol = (token: string): string =>
  `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`;
const offering = (protocols: string): Handshake => request({ 'sec-websocket-protocol': protocols });

test.each([
  [`${protocol('a.b-c')}, v4.channel.k8s.io`, 'a.b-c'],
  [`v5.channel.k8s.io,,  ${protocol('a~b/c+d==')}`, 'a~b/c+d=='],
  ['v4.channel.k8s.io', undefined],
  ['', undefined],
])('the bearer token in the WebSocket subprotocols %j is %j', (protocols, token) => {
  expect(subprotocolToken(offering(protocols))).toBe(token);
});

test('the subprotocols of a request that is not a WebSocket handshake contain no token', () => {
  const headers = { 'sec-websocket-protocol': `${protocol('a')}, any` };
  expect(subprotocolToken(request(headers, { method: 'POST' }))).toBeUndefined();
});

test.each<[string, string]>([
  ['without another subprotocol', protocol('a')],
  ['together with another token', `any, ${protocol('a')}, ${protocol('b')}`],
  ['next to empty entries', `${protocol('a')}, ,`],
  ['that is empty', `any, ${protocol('')}`],
  ['with padding', `any, ${protocol('a')}=`],
  ['in base64 instead of base64url', `any, ${protocol('a')}+`],
  ['with an invalid character before the encoding', `any, ${protocol('a').replace(/\.(?=[^.]*$)/, '.=')}`],
  ['that begins with a letter beyond ASCII', `any, ${protocol('éa')}`],
  ['that ends with a letter beyond ASCII', `any, ${protocol('aé')}`],
  ['with a space', `any, ${protocol('a b')}`],
  ['with a line break', `any, ${protocol('a\nb')}`],
])('a WebSocket handshake that offers a token %s is rejected with 401', (_, protocols) => {
  expect(() => subprotocolToken(offering(protocols))).toThrow(
    expect.objectContaining({ code: 401, headers: { 'WWW-Authenticate': expect.stringContaining('invalid_token') } }),
  );
});

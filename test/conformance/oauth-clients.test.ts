/** The OAuth libraries openid-client and oauth4webapi, as they are, against the whole server: they judge what it says. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import * as oauth from 'oauth4webapi';
import * as client from 'openid-client';
import { asClient, issuer, login, startLab, type Lab } from './lab.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab.stop());

/** The issuer's name leads to the server of the lab. */
async function throughLab(
  url: string,
  init: { method: string; headers: Record<string, string>; body?: client.FetchBody },
): Promise<Response> {
  expect(url.startsWith(`${issuer}/`)).toBe(true);
  const { method, headers, body } = init;
  const text = body === undefined || body === null ? {} : { body: String(body as string | URLSearchParams) };
  const answer = await lab.gateway(url.slice(issuer.length), { method, headers: { ...headers }, ...text });
  return new Response(answer.text === '' ? null : answer.text, {
    status: answer.status,
    headers: Object.entries(answer.headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((one): [string, string] => [name, one]),
    ),
  });
}

const fetching = { [oauth.customFetch]: throughLab };
const user = { username: login.username, password: login.password };

describe('oauth4webapi', () => {
  test.each(['oidc', 'oauth2'] as const)('discovers the server by %s', async (algorithm) => {
    const answer = await oauth.discoveryRequest(new URL(issuer), { algorithm, ...fetching });
    const server = await oauth.processDiscoveryResponse(new URL(issuer), answer);
    expect(server).toMatchObject({ issuer, jwks_uri: `${issuer}/oauth/keys` });
  });

  test('validates an access token as RFC 9068 says, by the published keys', async () => {
    const answer = await oauth.discoveryRequest(new URL(issuer), fetching);
    const server = await oauth.processDiscoveryResponse(new URL(issuer), answer);
    const token = String((await lab.token(login)).json()['access_token']);
    const request = new Request('https://resource.example/', { headers: { authorization: `Bearer ${token}` } });
    const claims = await oauth.validateJwtAccessToken(server, request, issuer, fetching);
    expect(claims).toMatchObject({ iss: issuer, aud: issuer, client_id: 'platform', username: 'alice' });
  });
});

const discover = (): Promise<client.Configuration> =>
  client.discovery(new URL(issuer), asClient.client_id, asClient.client_secret, undefined, {
    [client.customFetch]: throughLab,
  });

describe('openid-client', () => {
  test('logs in, judges the id_token by the published keys, and refreshes', async () => {
    const configuration = await discover();
    client.enableNonRepudiationChecks(configuration);
    const first = await client.genericGrantRequest(configuration, 'password', { ...user, scope: 'openid profile' });
    expect(first.claims()).toMatchObject({ iss: issuer, aud: 'platform', preferred_username: 'alice' });
    const second = await client.refreshTokenGrant(configuration, first.refresh_token ?? '');
    expect(second.claims()?.sub).toBe(first.claims()?.sub);
  });

  test('asks who is there, introspects and revokes', async () => {
    const configuration = await discover();
    const given = await client.genericGrantRequest(configuration, 'password', { ...user, scope: 'openid profile' });
    const subject = given.claims()?.sub ?? '';
    const person = await client.fetchUserInfo(configuration, given.access_token, subject);
    expect(person).toMatchObject({ sub: subject, preferred_username: 'alice' });
    const introspected = await client.tokenIntrospection(configuration, given.access_token);
    expect(introspected).toMatchObject({ active: true, sub: subject, client_id: 'platform' });
    await client.tokenRevocation(configuration, given.refresh_token ?? '');
    expect(await client.tokenIntrospection(configuration, given.access_token)).toEqual({ active: false });
    await expect(client.fetchUserInfo(configuration, given.access_token, subject)).rejects.toMatchObject({
      status: 401,
    });
  });
});

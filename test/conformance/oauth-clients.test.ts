/**
 * The unmodified OAuth libraries openid-client and oauth4webapi as clients of the whole server: they validate its
 * responses.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import * as oauth from 'oauth4webapi';
import * as client from 'openid-client';
import { Browser } from '../fakes/browser.ts';
import { asClient, asConsole, consoleCallback, issuer, login, startLab, type Lab } from '../labs/conformance/lab.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab.stop());

/** Fetches a URL of the issuer from the server of the lab. */
async function throughLab(
  url: string,
  init: { method: string; headers: Record<string, string>; body?: client.FetchBody },
): Promise<Response> {
  expect(url.startsWith(`${issuer}/`)).toBe(true);
  const { method, headers, body } = init;
  const text = body === undefined || body === null ? {} : { body: String(body as string | URLSearchParams) };
  const response = await lab.gateway(url.slice(issuer.length), { method, headers: { ...headers }, ...text });
  return new Response(response.text === '' ? null : response.text, {
    status: response.status,
    headers: Object.entries(response.headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((one): [string, string] => [name, one]),
    ),
  });
}

const fetching = { [oauth.customFetch]: throughLab };
const user = { username: login.username, password: login.password };

/** Logs in and consents at the URL to which a client sends its user, and returns the redirect back. */
async function authorize(url: URL): Promise<URL> {
  expect(url.origin).toBe(issuer);
  const browser = new Browser((path, options) => lab.secureGateway(path, options));
  const consent = await browser.submit(await browser.open(url.href.slice(issuer.length)), user);
  const { headers } = await browser.submit(consent, { decision: 'allow' });
  return new URL(headers.location ?? '');
}

/** Returns the same authorization response with the issuer of another server. */
function mixedUp(callback: URL): URL {
  const url = new URL(callback);
  url.searchParams.set('iss', 'https://elsewhere.example');
  return url;
}

describe('the library oauth4webapi', () => {
  // evidence: discovery-client-library
  test.each(['oidc', 'oauth2'] as const)(
    'the library oauth4webapi discovers the server with the discovery algorithm "%s"',
    async (algorithm) => {
      const response = await oauth.discoveryRequest(new URL(issuer), { algorithm, ...fetching });
      const server = await oauth.processDiscoveryResponse(new URL(issuer), response);
      expect(server).toMatchObject({ issuer, jwks_uri: `${issuer}/oauth/keys` });
    },
  );

  test('the library oauth4webapi completes the code flow with PKCE, state, nonce and iss, and validates the tokens', async () => {
    const response = await oauth.discoveryRequest(new URL(issuer), fetching);
    const server = await oauth.processDiscoveryResponse(new URL(issuer), response);
    const console = { client_id: asConsole.client_id };
    const [verifier, state, nonce] = [
      oauth.generateRandomCodeVerifier(),
      oauth.generateRandomState(),
      oauth.generateRandomNonce(),
    ];
    const url = new URL(server.authorization_endpoint ?? '');
    url.search = new URLSearchParams({
      response_type: 'code',
      ...console,
      redirect_uri: consoleCallback,
      scope: 'openid profile',
      state,
      nonce,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }).toString();
    const callback = await authorize(url);
    expect(() => oauth.validateAuthResponse(server, console, mixedUp(callback), state)).toThrow(/"iss"/);
    const parameters = oauth.validateAuthResponse(server, console, callback, state);
    const given = await oauth.authorizationCodeGrantRequest(
      server,
      console,
      oauth.ClientSecretBasic(asConsole.client_secret),
      parameters,
      consoleCallback,
      verifier,
      fetching,
    );
    const required = { expectedNonce: nonce, requireIdToken: true };
    const tokens = await oauth.processAuthorizationCodeResponse(server, console, given, required);
    await oauth.validateApplicationLevelSignature(server, given, fetching);
    expect(oauth.getValidatedIdTokenClaims(tokens)).toMatchObject({ aud: 'console', preferred_username: 'alice' });
  });

  // evidence: jwks-client-library
  test('the library oauth4webapi validates an access token according to RFC 9068 with the published keys', async () => {
    const response = await oauth.discoveryRequest(new URL(issuer), fetching);
    const server = await oauth.processDiscoveryResponse(new URL(issuer), response);
    const token = String((await lab.token(login)).json()['access_token']);
    const request = new Request('https://resource.example/', { headers: { authorization: `Bearer ${token}` } });
    const claims = await oauth.validateJwtAccessToken(server, request, issuer, fetching);
    expect(claims).toMatchObject({ iss: issuer, aud: issuer, client_id: 'platform', username: 'alice' });
  });
});

const discover = ({ client_id, client_secret } = asClient): Promise<client.Configuration> =>
  client.discovery(new URL(issuer), client_id, client_secret, undefined, {
    [client.customFetch]: throughLab,
  });

describe('the library openid-client', () => {
  test('the library openid-client logs in, validates the id_token with the published keys, and refreshes the tokens', async () => {
    const configuration = await discover();
    client.enableNonRepudiationChecks(configuration);
    const first = await client.genericGrantRequest(configuration, 'password', { ...user, scope: 'openid profile' });
    expect(first.claims()).toMatchObject({ iss: issuer, aud: 'platform', preferred_username: 'alice' });
    const second = await client.refreshTokenGrant(configuration, first.refresh_token ?? '');
    expect(second.claims()?.sub).toBe(first.claims()?.sub);
  });

  test('the library openid-client completes the code flow with PKCE, state, nonce and iss, and refreshes the tokens', async () => {
    const configuration = await discover(asConsole);
    client.enableNonRepudiationChecks(configuration);
    const checks = {
      pkceCodeVerifier: client.randomPKCECodeVerifier(),
      expectedState: client.randomState(),
      expectedNonce: client.randomNonce(),
    };
    const callback = await authorize(
      client.buildAuthorizationUrl(configuration, {
        redirect_uri: consoleCallback,
        scope: 'openid profile',
        state: checks.expectedState,
        nonce: checks.expectedNonce,
        code_challenge: await client.calculatePKCECodeChallenge(checks.pkceCodeVerifier),
        code_challenge_method: 'S256',
      }),
    );
    await expect(client.authorizationCodeGrant(configuration, mixedUp(callback), checks)).rejects.toThrow(/response/);
    const tokens = await client.authorizationCodeGrant(configuration, callback, checks);
    expect(tokens.claims()).toMatchObject({ iss: issuer, aud: 'console', preferred_username: 'alice' });
    const next = await client.refreshTokenGrant(configuration, tokens.refresh_token ?? '');
    expect(next.refresh_token).not.toBe(tokens.refresh_token);
    expect(next.claims()?.sub).toBe(tokens.claims()?.sub);
  });

  // evidence: introspection-client-library
  test('the library openid-client reads userinfo, and introspects and revokes tokens', async () => {
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

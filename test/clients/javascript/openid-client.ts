/**
 * Every flow of OAuth 2.0 and OpenID Connect that the server supports, written with openid-client in the usual way:
 * `openid-client.ts ISSUER` prints its results as one JSON object with the same form as from ../python/oauth_flows.py.
 */
import * as client from 'openid-client';
import { authorize, readKnown } from './known.ts';

type TokenResponse = client.TokenEndpointResponse & client.TokenEndpointResponseHelpers;

const known = await readKnown();
const issuer = new URL(process.argv[2] ?? '');

const discover = (name: string): Promise<client.Configuration> =>
  client.discovery(issuer, name, known.clients[name], undefined, { execute: [client.enableNonRepudiationChecks] });

async function introspected(config: client.Configuration, token: string): Promise<unknown[]> {
  const { active, client_id, username } = await client.tokenIntrospection(config, token);
  return [active, client_id, username];
}

const failure = (error: unknown): client.ResponseBodyError => {
  if (error instanceof client.ResponseBodyError) return error;
  throw error;
};

async function code(): Promise<object> {
  const config = await discover('console');
  const [verifier, state, nonce] = [client.randomPKCECodeVerifier(), client.randomState(), client.randomNonce()];
  const address = client.buildAuthorizationUrl(config, {
    redirect_uri: known.callback,
    scope: 'openid profile',
    state,
    nonce,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  });
  const tokens = await client.authorizationCodeGrant(config, await authorize(address, known), {
    pkceCodeVerifier: verifier,
    expectedState: state,
    expectedNonce: nonce,
  });
  const claims = tokens.claims();
  const sub = claims?.sub ?? '';
  const person = await client.fetchUserInfo(config, tokens.access_token, sub);
  const refreshed = await client.refreshTokenGrant(config, tokens.refresh_token ?? '');
  const before = await introspected(config, refreshed.access_token);
  await client.tokenRevocation(config, refreshed.refresh_token ?? '');
  const { status } = await fetch(config.serverMetadata().userinfo_endpoint ?? '', {
    headers: { authorization: `Bearer ${refreshed.access_token}` },
  });
  const error = await client.refreshTokenGrant(config, refreshed.refresh_token ?? '').then(() => undefined, failure);
  const [isActive] = await introspected(config, refreshed.access_token);
  return {
    scope: tokens.scope,
    user: claims?.['preferred_username'],
    userinfo: person.preferred_username,
    rotated: refreshed.refresh_token !== tokens.refresh_token,
    'same user': refreshed.claims()?.sub === sub,
    introspected: before,
    revoked: [status, error?.error, isActive],
  };
}

const password = (config: client.Configuration, username: string, secret: string): Promise<TokenResponse> =>
  client.genericGrantRequest(config, 'password', { username, password: secret, scope: 'openid profile' });

async function byPassword(): Promise<object> {
  const config = await discover('platform');
  const tokens = await password(config, known.username, known.password);
  return {
    user: tokens.claims()?.['preferred_username'],
    introspected: await introspected(config, tokens.access_token),
  };
}

async function byWrongPassword(): Promise<string | undefined> {
  const config = await discover('platform');
  const error = await password(config, 'nobody-of-openid-client', 'wrong').then(() => undefined, failure);
  return error?.error;
}

async function clientCredentials(): Promise<object> {
  const config = await discover('robot');
  const { refresh_token, access_token } = await client.clientCredentialsGrant(config);
  return { 'refresh token': refresh_token !== undefined, introspected: await introspected(config, access_token) };
}

console.log(
  JSON.stringify({
    issuer: (await discover('console')).serverMetadata().issuer,
    'authorization code': await code(),
    password: await byPassword(),
    'wrong password': await byWrongPassword(),
    'client credentials': await clientCredentials(),
  }),
);

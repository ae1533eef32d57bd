/** The same flows as in openid-client.ts, written with oauth4webapi. */
import * as oauth from 'oauth4webapi';
import { authorize, readKnown } from './known.ts';

const known = await readKnown();
const issuer = new URL(process.argv[2] ?? '');
const server = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer));

interface Party {
  readonly client: oauth.Client;
  readonly authentication: oauth.ClientAuth;
}

const party = (name: string): Party => ({
  client: { client_id: name },
  authentication: oauth.ClientSecretBasic(known.clients[name] ?? ''),
});

async function introspected({ client, authentication }: Party, token: string): Promise<unknown[]> {
  const response = await oauth.introspectionRequest(server, client, authentication, token);
  const { active, client_id, username } = await oauth.processIntrospectionResponse(server, client, response);
  return [active, client_id, username];
}

const failure = (error: unknown): oauth.ResponseBodyError => {
  if (error instanceof oauth.ResponseBodyError) return error;
  throw error;
};

async function refresh({ client, authentication }: Party, token: string): Promise<oauth.TokenEndpointResponse> {
  const response = await oauth.refreshTokenGrantRequest(server, client, authentication, token);
  const tokens = await oauth.processRefreshTokenResponse(server, client, response);
  await oauth.validateApplicationLevelSignature(server, response);
  return tokens;
}

async function code(): Promise<object> {
  const console = party('console');
  const { client, authentication } = console;
  const [verifier, state, nonce] = [
    oauth.generateRandomCodeVerifier(),
    oauth.generateRandomState(),
    oauth.generateRandomNonce(),
  ];
  const address = new URL(server.authorization_endpoint ?? '');
  address.search = new URLSearchParams({
    response_type: 'code',
    client_id: 'console',
    redirect_uri: known.callback,
    scope: 'openid profile',
    state,
    nonce,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  }).toString();
  const callback = oauth.validateAuthResponse(server, client, await authorize(address, known), state);
  const response = await oauth.authorizationCodeGrantRequest(
    server,
    client,
    authentication,
    callback,
    known.callback,
    verifier,
  );
  const tokens = await oauth.processAuthorizationCodeResponse(server, client, response, {
    expectedNonce: nonce,
    requireIdToken: true,
  });
  await oauth.validateApplicationLevelSignature(server, response);
  const claims = oauth.getValidatedIdTokenClaims(tokens);
  const sub = claims?.sub ?? '';
  const userinfo = await oauth.userInfoRequest(server, client, tokens.access_token);
  const person = await oauth.processUserInfoResponse(server, client, sub, userinfo);
  const refreshed = await refresh(console, tokens.refresh_token ?? '');
  const before = await introspected(console, refreshed.access_token);
  const revocation = await oauth.revocationRequest(server, client, authentication, refreshed.refresh_token ?? '');
  await oauth.processRevocationResponse(revocation);
  const { status } = await oauth.userInfoRequest(server, client, refreshed.access_token);
  const error = await refresh(console, refreshed.refresh_token ?? '').then(() => undefined, failure);
  const [isActive] = await introspected(console, refreshed.access_token);
  return {
    scope: tokens.scope,
    user: claims?.['preferred_username'],
    userinfo: person.preferred_username,
    rotated: refreshed.refresh_token !== tokens.refresh_token,
    'same user': oauth.getValidatedIdTokenClaims(refreshed)?.sub === sub,
    introspected: before,
    revoked: [status, error?.error, isActive],
  };
}

async function password(username: string, secret: string): Promise<oauth.TokenEndpointResponse> {
  const { client, authentication } = party('platform');
  const form = { username, password: secret, scope: 'openid profile' };
  const response = await oauth.genericTokenEndpointRequest(server, client, authentication, 'password', form);
  return oauth.processGenericTokenEndpointResponse(server, client, response);
}

async function byPassword(): Promise<object> {
  const tokens = await password(known.username, known.password);
  return {
    user: oauth.getValidatedIdTokenClaims(tokens)?.['preferred_username'],
    introspected: await introspected(party('platform'), tokens.access_token),
  };
}

async function byWrongPassword(): Promise<string | undefined> {
  return (await password('nobody-of-oauth4webapi', 'wrong').then(() => undefined, failure))?.error;
}

async function clientCredentials(): Promise<object> {
  const robot = party('robot');
  const { client, authentication } = robot;
  const response = await oauth.clientCredentialsGrantRequest(server, client, authentication, {});
  const tokens = await oauth.processClientCredentialsResponse(server, client, response);
  return {
    'refresh token': tokens.refresh_token !== undefined,
    introspected: await introspected(robot, tokens.access_token),
  };
}

console.log(
  JSON.stringify({
    issuer: server.issuer,
    'authorization code': await code(),
    password: await byPassword(),
    'wrong password': await byWrongPassword(),
    'client credentials': await clientCredentials(),
  }),
);

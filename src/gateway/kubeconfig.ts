/** `GET …/kubeconfig`: a kubeconfig with which kubectl uses the Kubernetes API through this server, as the caller. */
import { configGroup } from '../config/names.ts';
import type { Request } from 'express';
import { bearerCredentials } from '../auth/authenticators/bearer-credentials.ts';
import type { UserInfo } from '../auth/user.ts';
import { toYAML } from '../config/yaml.ts';
import { badRequest, noSuchPath } from '../runtime/errors.ts';
import { negotiate } from '../http/request/negotiate.ts';
import { authenticated } from '../http/access.ts';
import { defineRoute } from '../http/define-route.ts';
import { queryParameters } from '../http/request/parameters.ts';
import type { Route } from '../http/route.ts';
import { described, flag, list, named, object, oneOf, text, type TypeOf } from '../http/schema.ts';
import { write } from '../http/response/write.ts';
import type { ApiGroupVersion } from '../apimachinery/api-groups.ts';

const version = 'v1alpha2';

interface KubeconfigParts {
  /** `gateway.externalURL` of the configuration object; requests cannot change it. */
  readonly externalURL: () => string;
  /** CA of the TLS listener in PEM; undefined if clients already trust its certificate. */
  readonly authority: () => string | undefined;
}

const yaml = 'application/yaml';
const json = 'application/json';

const clusterSchema = named(
  'KubeconfigCluster',
  object(
    { server: text },
    {
      'certificate-authority-data': described(
        'CA in base64-encoded PEM; missing if clients already trust the certificate',
        text,
      ),
    },
  ),
);
const pluginSchema = named(
  'KubeconfigExec',
  object({
    apiVersion: text,
    command: text,
    args: list(text),
    interactiveMode: text,
    provideClusterInfo: flag,
    installHint: text,
  }),
);
const userSchema = named('KubeconfigUser', object({}, { token: text, exec: pluginSchema }));
const contextSchema = named('KubeconfigContext', object({ cluster: text, user: text }));
const kubeconfigSchema = named(
  'Kubeconfig',
  object({
    apiVersion: oneOf('v1'),
    kind: oneOf('Config'),
    clusters: list(named('KubeconfigNamedCluster', object({ name: text, cluster: clusterSchema }))),
    users: list(named('KubeconfigNamedUser', object({ name: text, user: userSchema }))),
    contexts: list(named('KubeconfigNamedContext', object({ name: text, context: contextSchema }))),
    'current-context': text,
  }),
);

const kubeconfigRoute = ({ externalURL, authority }: KubeconfigParts): Route =>
  defineRoute({
    method: 'get',
    path: `/kapis/${configGroup}/${version}/kubeconfig`,
    summary: 'Get a kubeconfig',
    description:
      'Returns a kubeconfig with which kubectl uses the Kubernetes API through this server. Its credential plugin, `platform-apiserver credential`, logs in when needed. Available to all authenticated callers. Without `gateway.externalURL` in the configuration, the response is 404.',
    access: authenticated,
    query: queryParameters({
      token: described(
        '`embed`: use the token of this request instead of the plugin; the kubeconfig works until the token expires',
        oneOf('embed').optional(),
      ),
    }),
    responses: {
      200: {
        description: 'The kubeconfig',
        content: { [yaml]: kubeconfigSchema, [json]: kubeconfigSchema },
      },
    },
    errors: [404],
    async handler({ req, res, context, query: { token } }) {
      const type = negotiate(req.headers.accept, [yaml, json], (one) => one);
      const server = externalURL();
      if (server === '')
        throw noSuchPath(
          'no kubeconfig is available: set gateway.externalURL in the cluster configuration object to the address at which clients reach this server',
        );
      const credential = token === 'embed' ? { token: bearerOf(req) } : plugin;
      const config = kubeconfigOf(server, authority(), context.user, credential);
      const written = type === json ? `${JSON.stringify(config)}\n` : toYAML(config);
      await write(req, res, {
        contentType: type,
        body: [Buffer.from(written)],
        headers: { 'Cache-Control': 'no-store' },
      });
    },
  });

/**
 * Returns the token that authenticated the request (RFC 6750 section 2.1). Throws 400 if the caller used other
 * credentials.
 */
function bearerOf({ headers }: Request): string {
  const token = bearerCredentials(headers.authorization);
  if (token === undefined) throw badRequest('token=embed requires a request with a bearer token');
  return token;
}

/** Configuration of the credential plugin (docs/guides/kubectl.md). */
const plugin = {
  exec: {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: 'platform-apiserver',
    args: ['credential'],
    interactiveMode: 'IfAvailable',
    provideClusterInfo: true,
    installHint: 'in a clone of platform-apiserver: npm ci && npm run build && npm link (docs/guides/kubectl.md)',
  },
};

/**
 * Returns a kubeconfig. Names in the kubeconfig contain the host, so that kubeconfigs of several platforms can be
 * merged.
 */
function kubeconfigOf(
  server: string,
  authority: string | undefined,
  { username }: UserInfo,
  credential: TypeOf<typeof userSchema>,
): TypeOf<typeof kubeconfigSchema> {
  const { host } = new URL(server);
  const user = `${username}@${host}`;
  const ca = authority === undefined ? {} : { 'certificate-authority-data': Buffer.from(authority).toString('base64') };
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: host, cluster: { server, ...ca } }],
    users: [{ name: user, user: credential }],
    contexts: [{ name: host, context: { cluster: host, user } }],
    'current-context': host,
  };
}

/** API group for the configuration of clients, served at /kapis/config.platform.io. */
export const configGroupVersion: ApiGroupVersion = {
  group: configGroup,
  version,
  resources: [{ name: 'kubeconfig', singularName: 'kubeconfig', namespaced: false, kind: 'Config', verbs: ['list'] }],
};

export const configRoutes = (parts: KubeconfigParts): Route[] => [kubeconfigRoute(parts)];

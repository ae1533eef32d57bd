/**
 * The composition root: every part is built once, in order, each handed what it needs; the two faces are mounted from the same
 * parts. The only file that knows them all.
 */
import { randomUUID } from 'node:crypto';
import { watchFile, unwatchFile } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { ensureAdminSecret } from './accounts/passwords/admin.ts';
import { Directory } from './accounts/directory/directory.ts';
import { IdentityProviders } from './accounts/providers/identity-providers.ts';
import { PasswordProviders } from './accounts/providers/password-providers.ts';
import { Linking } from './accounts/providers/linking.ts';
import { RedirectProviders } from './accounts/providers/redirect-providers.ts';
import { KeyRotation } from './tokens/key-rotation.ts';
import { LastLogins } from './accounts/logins/last-logins.ts';
import { LoginHistories } from './accounts/logins/history.ts';
import { LoginLimiter } from './accounts/logins/limit.ts';
import { PasswordStore } from './accounts/passwords/store.ts';
import { Passwords } from './accounts/passwords/passwords.ts';
import { RefreshTokens } from './tokens/refresh-tokens.ts';
import { SecretRefs } from './cluster/secret-refs.ts';
import { Sessions } from './tokens/sessions/sessions.ts';
import { SharedFailures } from './accounts/logins/shared-failures.ts';
import { SigningKeys } from './tokens/signing-keys.ts';
import { UserConditions } from './accounts/directory/user-conditions.ts';
import { Users } from './accounts/directory/users.ts';
import { createAuditor } from './audit/auditor.ts';
import { Sinks } from './audit/sinks.ts';
import {
  aggregatedAuthenticator,
  gatewayAuthenticator,
  platformToken,
  requestHeader,
  tokenReview,
} from './auth/authenticators/index.ts';
import { accessReview } from './auth/authorizers/access-review.ts';
import { RequestHeaderSource } from './auth/authenticators/request-header-config.ts';
import { AccessTokens } from './auth/authenticators/access-tokens.ts';
import { Tokens } from './tokens/jwt.ts';
import { cacheFigures } from './runtime/bounded-cache.ts';
import type { Flags } from './config/flags.ts';
import { LiveConfiguration } from './config/live.ts';
import { formatProblem, parseConfiguration } from './config/parse.ts';
import { objectNames, readVersion } from './config/names.ts';
import { authenticated } from './http/access.ts';
import { customResourcesRoutes } from './docs/custom-resources.ts';
import { docsRoutes, unmatchedDocs } from './docs/explorer/routes.ts';
import { openapiRoutes, unmatchedOpenAPI } from './docs/aggregated.ts';
import { platformRoutes, unmatchedDescriptions } from './docs/platform.ts';
import { createFace } from './http/chain.ts';
import { gateway } from './gateway/index.ts';
import { Health, unmatchedHealth } from './http/health.ts';
import { listenHTTP, listenTLS, type Certificate } from './http/listeners/listen.ts';
import { OpenWatches } from './http/open-streams.ts';
import { collectProcessMetrics, counter, durationsOf, gauge, gauges, knowResource } from './runtime/metrics.ts';
import { indexRoute, metricsRoute, versionRoutes } from './http/process-routes.ts';
import { apisRoutes, kapisRoutes, unmatchedApis, unmatchedKapis } from './resources/routes.ts';
import type { CacheFigures } from './cluster/catalogue/cached-resource.ts';
import { Catalogue } from './cluster/catalogue/catalogue.ts';
import { GrantedNamespaces } from './cluster/catalogue/granted-namespaces.ts';
import {
  aggregatedLoggingRoutes,
  loggingGroups,
  loggingGroupVersion,
  loggingRoutes,
  logQueryKind,
  LogsBounds,
  podLister,
} from './logs/index.ts';
import { configGroup, configRoutes } from './gateway/kubeconfig.ts';
import { iamGroup, iamRoutes } from './iam/index.ts';
import { kinds, nodes } from './resources/kinds/index.ts';
import { createKubeClient } from './cluster/client/client.ts';
import { Discovery } from './cluster/discovery.ts';
import { Lease } from './cluster/lease.ts';
import { OwnRights } from './cluster/own-rights.ts';
import { PlatformConfigSource } from './cluster/config-map-source.ts';
import type { Logger } from './runtime/logger.ts';
import { Logs } from './logs/open-store.ts';
import { openStore } from './logs/stores/index.ts';
import { accountPath } from './oauth/browser-login.ts';
import { oauthRoutes, unmatchedOAuth } from './oauth/index.ts';
import { publishAuthority, publishCABundle } from './tls/publish.ts';
import { servingFromFiles, servingFromSecret } from './tls/serving.ts';

/** How often certificates, their files and what was published are looked at again. */
const certificateInterval = 30_000;
const filePollInterval = 1_000;
/** Milliseconds until what was cut off must have been written down. */
const longestEnd = 1_000;

export interface RunningServer {
  readonly ports: { readonly http: number; readonly https: number; readonly aggregated: number };
  /** Not ready for `announce` milliseconds, then no new requests and `grace` milliseconds for those in flight. */
  stop(times: { announce: number; grace: number }): Promise<void>;
}

/** Throws if it cannot serve; `signal` ends a start that is under way. `connectToCluster` is another one where there is none. */
export async function startServer(
  flags: Flags,
  log: Logger,
  signal: AbortSignal,
  connectToCluster: typeof createKubeClient = createKubeClient,
): Promise<RunningServer> {
  const { namespace } = flags;
  const client = await connectToCluster({ kubeconfig: flags.kubeconfig });
  const live = new LiveConfiguration();
  live.warned.subscribe((warnings) => {
    const problems = warnings.map(formatProblem);
    if (problems.length > 0) log.warn('the configuration in force is incomplete', { problems });
    else log.info('the configuration in force is complete again');
  });
  const configuration = await followConfiguration();

  const passwords = new Passwords();
  await ensureAdminSecret({ client, namespace, configuration: live.value, passwords, log });
  const secrets = new SecretRefs({ client, namespace, log });
  const users = new Users({ client, namespace, log });
  const directory = new Directory({ config: live, secrets, users, passwords });
  const identityProviders = new IdentityProviders({ config: live, secrets, log });
  const passwordProviders = new PasswordProviders(identityProviders);
  const redirectProviders = new RedirectProviders(identityProviders);
  const linking = new Linking({ config: live, client, directory, log });
  const passwordStore = new PasswordStore({ client, namespace, directory, passwords, log });
  const conditions = new UserConditions({ client, directory, users, log });
  directory.changed.subscribe((username) => {
    if (username === undefined) conditions.lookAtAll();
    else conditions.look(username);
  });
  users.start();
  await directory.start(signal);

  const refreshTokens = await RefreshTokens.load(client, namespace);
  const signingKeys = await SigningKeys.load(client, namespace);
  for (const keys of [refreshTokens, signingKeys]) keys.follow(log);
  const limiter = new LoginLimiter(
    () => live.value.authentication.loginLimit,
    Date.now,
    (text) => refreshTokens.mark(text),
  );
  directory.unlocked.subscribe((account) => limiter.unlock(account));
  const identity = `${hostname()}_${randomUUID()}`;
  const lease = new Lease({ client, namespace, name: objectNames.lease, identity, log });
  lease.start();
  const rotation = new KeyRotation({
    keys: signingKeys,
    settings: () => live.value.authentication,
    isOurs: () => lease.isHeld(),
    log,
  });
  rotation.start();
  const sessions = new Sessions({
    client,
    namespace,
    lives: () => live.value.authentication,
    tokens: refreshTokens,
    maySweep: () => lease.isHeld(),
    isDismissed: (spec) => directory.isDismissed(spec),
    log,
  });
  directory.dismissed.subscribe((dismissed) => void sessions.dismiss(dismissed));
  sessions.start();
  const sharedFailures = new SharedFailures({
    client,
    namespace,
    limiter,
    within: () => live.value.authentication.loginLimit.within,
    maySweep: () => lease.isHeld(),
    log,
  });
  sharedFailures.start();
  const lastLogins = new LastLogins({ client, users, log });
  const loginHistories = new LoginHistories({
    client,
    namespace,
    settings: () => live.value.authentication.loginHistory,
    directory,
    loggedIn: (user, time) => lastLogins.note(user, time),
    maySweep: () => lease.isHeld(),
    log,
  });
  loginHistories.start();
  const tokens = new Tokens({
    keys: signingKeys,
    settings: () => live.value.authentication,
  });

  const accessTokens = new AccessTokens({ tokens, sessions, directory });

  const discovery = new Discovery({ client, log });
  discovery.start();
  const granted = new GrantedNamespaces({ client, log });
  granted.start();
  const catalogue = new Catalogue({
    client,
    discovery,
    rights: new OwnRights({ client }),
    limits: () => live.value.cache,
    kinds,
    known: knowResource,
    log,
  });
  catalogue.start();
  const nodesCopy = catalogue.keep(nodes);

  const observeLogs = durationsOf(
    'log_store_duration_seconds',
    'Time that a question to the log store took, of exports and tails as a whole, by operation and result.',
    ['operation', 'result'],
  );
  const dropRecords = counter(
    'log_records_dropped_total',
    'Records that a log store returned although the caller is not allowed to see them, by store.',
    'store',
  );
  const logs = new Logs({
    config: live,
    open: (settings) =>
      openStore(settings, {
        listPods: podLister(catalogue),
        secrets,
        observe: (operation, result, seconds) => observeLogs({ operation, result }, seconds),
        drop: dropRecords,
      }),
    client,
    log,
  });
  logs.start();

  const requestHeaders = new RequestHeaderSource({ client, log });
  requestHeaders.start();
  const reviewToken = tokenReview(client, async () => {
    const own = await client.audiences();
    return own.length === 0 ? [] : [live.value.authentication.issuer, ...own];
  });
  const tokenAuthenticators = [platformToken(accessTokens), reviewToken];
  const authorizer = accessReview(client);
  const gatewayAuthentication = gatewayAuthenticator(tokenAuthenticators);
  const accounts = { directory, passwords, passwordStore, limiter, loginHistories, sessions, authorizer };

  const sinks = new Sinks({
    config: live,
    secrets,
    log,
    dropped: counter(
      'audit_events_dropped_total',
      'Events of the audit that were lost, by where they should have gone.',
      'sink',
    ),
  });
  const auditor = createAuditor(
    () => live.value.audit.policy,
    () => sinks.current,
  );

  const health = new Health([
    {
      name: 'configuration',
      problem: () => (live.accepted ? '' : 'none was accepted yet'),
      warning: () =>
        [
          ...(live.problems.length === 0
            ? []
            : [`the newest one was refused: ${live.problems.map(formatProblem).join('; ')}`]),
          ...live.warnings.map(formatProblem),
        ].join('; '),
    },
    { name: 'users', problem: () => (users.hasSynced() ? '' : 'not read yet') },
    { name: 'sessions', problem: () => (sessions.hasSynced() ? '' : 'not read yet') },
    { name: 'request-header-ca', problem: () => requestHeaders.problem },
    { name: 'logs', problem: () => '', warning: () => logs.warning },
  ]);
  collectProcessMetrics();
  gauge(
    'configuration_problems',
    'Problems of the newest configuration, and of what the one in force refers to; 0 when all is well.',
    () => live.problems.length + live.warnings.length,
  );

  const watches = new OpenWatches();
  sessions.ended.subscribe((sid) => watches.endSession(sid));
  directory.invalidated.subscribe(() => void watches.recheck());

  const packageVersion = readVersion();
  const describing = { version: packageVersion, issuer: () => live.value.authentication.issuer };
  const loggingParts = { authorizer, granted, catalogue, client, logs, bounds: new LogsBounds() };
  const platform = [
    ...health.routes,
    metricsRoute,
    ...oauthRoutes({
      ...accounts,
      passwordProviders,
      redirectProviders,
      refreshTokens,
      linking,
      tokens,
      accessTokens,
      reviewToken,
      authenticator: gatewayAuthentication,
      audiences: () => client.audiences(),
      keys: signingKeys,
      issuer: () => live.value.authentication.issuer,
      multipleLogin: () => live.value.authentication.multipleLogin,
    }),
    ...versionRoutes('/kapis/version', packageVersion),
    ...kapisRoutes({
      authorizer,
      resources: [nodesCopy],
      every: { catalogue, granted, client, kinds, namespace },
      otherGroups: [configGroup, iamGroup, ...loggingGroups],
    }),
    ...configRoutes({ externalURL: () => live.value.gateway.externalURL, authority: () => certificate.ca }),
    ...iamRoutes({ ...accounts, client, users, release: { namespace, configMap: flags.configMap } }),
    ...loggingRoutes(loggingParts),
    ...customResourcesRoutes({ client, discovery, log, ...describing }),
    ...docsRoutes(describing),
  ];
  const gatewayRoutes = [...platform, ...platformRoutes({ routes: platform, ...describing })];
  const groupRoutes = [
    ...apisRoutes({ authorizer, resources: [nodesCopy], otherGroups: [loggingGroupVersion] }),
    ...aggregatedLoggingRoutes(loggingParts),
  ];
  const { served, kind } = nodes;
  const described = [{ ...served, kind, source: `io.k8s.api.core.v1.${kind}` }];
  const aggregatedRoutes = [
    ...health.routes,
    metricsRoute,
    ...versionRoutes('/version', packageVersion),
    ...groupRoutes,
    ...openapiRoutes({
      client,
      log,
      version: packageVersion,
      routes: groupRoutes,
      resources: described,
      kinds: [logQueryKind],
      groupVersions: [served, loggingGroupVersion],
    }),
  ];
  knowResource(nodes.served.resource);
  const figures = (read: (figures: CacheFigures) => number) => () =>
    [...catalogue.figures()].map(([resource, one]) => [resource, read(one)] as const);
  gauges(
    'store_objects',
    'Objects held of a resource.',
    'resource',
    figures(({ objects }) => objects),
  );
  gauges(
    'store_bytes',
    'Bytes held of a resource, outside the V8 heap.',
    'resource',
    figures(({ bytes }) => bytes),
  );
  gauges(
    'store_age_seconds',
    'Time since the watch of a resource was last heard.',
    'resource',
    figures(({ lastSignOfLife }) => (Date.now() - lastSignOfLife) / 1_000),
  );
  gauge('store_limit_bytes', 'What all copies may hold together.', () => live.value.cache.maxBytes);
  gauges('cache_entries', 'Entries of a cache, limiter or queue whose keys come from requests.', 'name', () =>
    [...cacheFigures()].map(([name, { entries }]) => [name, entries] as const),
  );
  gauges('cache_bytes', 'Bytes of these entries, estimated.', 'name', () =>
    [...cacheFigures()].map(([name, { bytes }]) => [name, bytes] as const),
  );
  gauge('open_watches', 'Watches and streams that are open now.', () => watches.size);
  const shared = { authorizer, watches, auditor, requests: () => live.value.requests, log };
  const front = createFace(gatewayRoutes, {
    ...shared,
    authenticator: gatewayAuthentication,
    gateway: gateway(client.upstream),
    unmatched: [
      unmatchedHealth,
      unmatchedOAuth,
      unmatchedKapis,
      unmatchedDocs,
      unmatchedDescriptions,
      { paths: /^\/$/, access: authenticated },
    ],
    home: accountPath,
    strictTransport: () => live.value.gateway,
  });
  const aggregated = createFace([...aggregatedRoutes, indexRoute(aggregatedRoutes)], {
    ...shared,
    authenticator: aggregatedAuthenticator(
      requestHeader(() => requestHeaders.value),
      tokenAuthenticators,
    ),
    unmatched: [unmatchedHealth, unmatchedApis, unmatchedOpenAPI],
  });

  const { tlsCertFile, tlsPrivateKeyFile } = flags;
  const serving =
    tlsCertFile !== undefined && tlsPrivateKeyFile !== undefined
      ? servingFromFiles(tlsCertFile, tlsPrivateKeyFile)
      : servingFromSecret({ client, namespace, hosts: () => hostsOf(flags, live.value.gateway.externalURL), log });
  let certificate = await serving();
  const listeners = [
    await listenHTTP(front, { host: flags.bindAddress, port: flags.httpPort }),
    await listenTLS(front, { host: flags.bindAddress, port: flags.httpsPort }, certificate, false),
    await listenTLS(aggregated, { host: flags.aggregatedBindAddress, port: flags.aggregatedPort }, certificate, true),
  ] as const;
  const publish = async (): Promise<void> => {
    if (certificate.ca === undefined) return;
    await publishAuthority(client, namespace, certificate.ca);
    if (certificate.own) await publishCABundle(client, certificate.ca, log);
  };
  const lookAgain = async (): Promise<void> => {
    try {
      const next = await serving();
      if (next.cert !== certificate.cert) {
        const shown: Certificate = next;
        for (const listener of listeners) listener.setCertificate(shown);
        log.info('the serving certificate was changed');
      }
      certificate = next;
      await publish();
    } catch (error) {
      log.warn('the serving certificate could not be looked at again', { error });
    }
  };
  await publish();
  const timer = setInterval(() => void lookAgain(), certificateInterval);
  live.subscribe(() => void lookAgain());

  const [http, https, aggregator] = listeners;
  const ports = { http: http.port, https: https.port, aggregated: aggregator.port };
  log.info('serving', { version: packageVersion, ...ports });
  return {
    ports,
    async stop({ announce, grace }) {
      health.drain();
      clearInterval(timer);
      await sleep(announce);
      watches.endAll(announce === 0 ? 0 : grace / 2);
      await Promise.all(listeners.map((listener) => listener.close(grace)));
      // Requests that were cut off are over a moment later.
      await Promise.race([auditor.idle(), sleep(longestEnd, undefined, { ref: false })]);
      await sinks.close();
      await logs.stop();
      catalogue.stop();
      granted.stop();
      discovery.stop();
      requestHeaders.stop();
      await Promise.all([sharedFailures, loginHistories, lastLogins].map((part) => part.stop()));
      for (const part of [conditions, users, rotation, sessions, refreshTokens, signingKeys, secrets]) part.stop();
      await lease.stop();
      await configuration.stop();
      await client.close();
      log.info('ended');
    },
  };

  /** From the ConfigMap, or from a file that is looked at each second. */
  async function followConfiguration(): Promise<{ stop(): Promise<void> }> {
    const file = flags.config;
    if (file === undefined) {
      const source = new PlatformConfigSource({ client, namespace, name: flags.configMap, live, log });
      await source.start(signal);
      return source;
    }
    const read = async (): Promise<void> => {
      const parsed = parseConfiguration(await readFile(file, 'utf8'));
      if (parsed.ok) live.accept(parsed.value);
      else {
        live.refuse(parsed.problems);
        log.error('configuration refused', { problems: parsed.problems.map(formatProblem) });
      }
    };
    await read();
    if (!live.accepted) throw new Error(`${file} is invalid:\n${live.problems.map(formatProblem).join('\n')}`);
    const changed = (): void => {
      read().catch((error: unknown) => log.error('the configuration cannot be read', { error }));
    };
    watchFile(file, { interval: filePollInterval }, changed);
    return {
      async stop() {
        unwatchFile(file, changed);
      },
    };
  }
}

/** The names and addresses by which the TLS listeners are reached. */
function hostsOf({ serviceName, namespace, bindAddress, aggregatedBindAddress }: Flags, externalURL: string): string[] {
  const service = [
    serviceName,
    `${serviceName}.${namespace}`,
    `${serviceName}.${namespace}.svc`,
    `${serviceName}.${namespace}.svc.cluster.local`,
  ];
  const bound = [bindAddress, aggregatedBindAddress].filter((address) => address !== '0.0.0.0' && address !== '::');
  const external = externalURL === '' ? [] : [new URL(externalURL).hostname.replace(/^\[|\]$/g, '')];
  return [...new Set([...service, 'localhost', '127.0.0.1', '::1', ...bound, ...external])];
}

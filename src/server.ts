/**
 * Builds the server: all components in order of dependency, then routes and listeners. No other file knows all
 * components.
 */
import { NamespaceAccessCache } from './apimachinery/namespace-access-cache.ts';
import { buildAccounts, type AccountParts } from './accounts/build.ts';
import { buildAudit } from './audit/build.ts';
import { buildAuth } from './auth/build.ts';
import { buildCluster } from './cluster/build.ts';
import { buildCatalogue } from './cluster/catalogue/build.ts';
import { createKubeClient } from './cluster/client/client.ts';
import { fileError } from './config/flag-file.ts';
import type { Flags } from './config/flags.ts';
import { publicURL } from './config/public-url.ts';
import { readVersion } from './runtime/package.ts';
import { openapiRoutes } from './docs/aggregated.ts';
import { customResourcesRoutes } from './docs/custom-resources.ts';
import { docsRoutes } from './docs/explorer/routes.ts';
import { platformRoutes } from './docs/platform.ts';
import { describedResource } from './docs/openapi/cluster-schemas.ts';
import { gateway } from './gateway/index.ts';
import { configGroupVersion, configRoutes } from './gateway/kubeconfig.ts';
import { createHttpHandler } from './http/chain.ts';
import { Health } from './http/health.ts';
import type { HttpHandler } from './http/listeners/http-handler.ts';
import { Listeners, type Ports } from './http/listeners/listeners.ts';
import { OpenStreams } from './http/open-streams.ts';
import { indexRoute, metricsRoute, versionRoute } from './http/process-routes.ts';
import { profileRoutes } from './http/profile-routes.ts';
import type { Route } from './http/route.ts';
import { iamGroupVersion, iamRoutes } from './iam/index.ts';
import {
  aggregatedLoggingRoutes,
  buildLogs,
  loggingGroups,
  loggingGroupVersion,
  loggingRoutes,
  logQueryKind,
} from './logs/index.ts';
import { accountPath } from './oauth/browser-login.ts';
import { oauthRoutes } from './oauth/index.ts';
import { kinds, nodes } from './resources/kinds/index.ts';
import { apisRoutes, kapisRoutes } from './resources/routes.ts';
import { Lifecycle, type StopTimes } from './runtime/lifecycle.ts';
import type { Logger } from './runtime/logger.ts';
import { GarbageOfStart, containerMemoryLimit } from './runtime/memory.ts';
import { buildInfo, connections, memoryLimit, openWatches, sentBytes } from './runtime/metrics/definitions.ts';
import { collectProcessMetrics } from './runtime/metrics/registry.ts';
import { systemClock } from './runtime/time.ts';
import { buildCertificate } from './tls/build.ts';
import { buildTokens } from './tokens/build.ts';
import { buildTracing } from './tracing/build.ts';

export interface RunningServer {
  readonly ports: Ports;
  stop(times: StopTimes): Promise<void>;
}

/**
 * Starts the server. Throws if the start fails. `signal` aborts the start. Tests replace `connect` with an in-memory
 * cluster.
 */
export async function startServer(
  flags: Flags,
  log: Logger,
  signal: AbortSignal,
  connect: typeof createKubeClient = createKubeClient,
): Promise<RunningServer> {
  const lifecycle = new Lifecycle(log);
  const { kubeconfig } = flags;
  const client = await connect({ kubeconfig }).catch((error: unknown) => {
    throw kubeconfig === undefined ? error : fileError('--kubeconfig', kubeconfig, error);
  });
  const parts = buildParts(flags, { client, lifecycle, clock: systemClock, log });
  const listeners = lifecycle.add('listeners', new Listeners({ ...parts, ...buildHttpHandlers(parts) }));
  // A server that cannot list nodes keeps the garbage of its start.
  const hasStarted = (): boolean =>
    parts.nodesCache.hasSynced() && lifecycle.checks.every(({ problem }) => problem() === '');
  lifecycle.add('garbage', new GarbageOfStart({ hasStarted, clock: systemClock }));
  connections.read(() => listeners.figures.map(({ listener, connections: count }) => [{ listener }, count]));
  sentBytes.read(() => listeners.figures.map(({ listener, sentBytes: bytes }) => [{ listener }, bytes]));
  const limit = containerMemoryLimit();
  memoryLimit.read(() => [[{}, limit]]);
  collectProcessMetrics();
  await lifecycle.start(signal);
  log.info('serving', { version: parts.version, ...listeners.ports });
  return {
    ports: listeners.ports,
    async stop(times) {
      await lifecycle.stop(times);
      log.info('stopped');
    },
  };
}

type Parts = ReturnType<typeof buildParts>;

/** Builds the components in order of dependency: each component uses only components that are built before it. */
function buildParts(flags: Flags, given: Parameters<typeof buildCluster>[1]) {
  const cluster = buildCluster(flags, given);
  const { live, lifecycle } = cluster;
  buildTracing(cluster);
  const tokens = buildTokens(cluster);
  const accounts = buildAccounts(cluster, tokens);
  const auth = buildAuth(cluster, tokens, accounts);
  const reading = buildCatalogue(cluster, kinds);
  const nodesCache = reading.catalogue.cachePermanently(nodes);
  const logging = buildLogs(cluster, auth, reading);
  const auditor = buildAudit(cluster);
  const certificate = buildCertificate(flags, cluster);
  const openStreams = buildStreams(accounts);
  const health = lifecycle.add('shutdown', new Health(() => lifecycle.checks));
  const version = readVersion();
  buildInfo.read(() => [[{ version, nodejs: process.versions.node }, 1]]);
  const issuer = (): string => live.value.authentication.issuer;
  const own = { flags, nodesCache, logging, auditor, certificate, openStreams, health, version, issuer };
  return { ...cluster, ...tokens, ...accounts, ...auth, ...reading, ...own };
}

/** Builds the registry of open streams. A stream is closed when its session is revoked or its user loses access. */
function buildStreams({ sessions, directory }: AccountParts): OpenStreams {
  const openStreams = new OpenStreams();
  sessions.ended.subscribe((sid) => openStreams.endSession(sid));
  directory.invalidated.subscribe(() => void openStreams.recheck());
  openWatches.read(() => [[{}, openStreams.size]]);
  return openStreams;
}

function gatewayRoutes(parts: Parts): readonly Route[] {
  const { client, live, namespace, clock, authorizer, catalogue, granted, certificate, health, version, flags } = parts;
  const routes = [
    ...health.routes,
    metricsRoute,
    ...profileRoutes(),
    ...oauthRoutes({ ...parts, authenticator: parts.gatewayAuthentication }),
    versionRoute('/kapis/version', version),
    ...kapisRoutes({
      authorizer,
      fieldSchemas: parts.fieldSchemas,
      resources: [parts.nodesCache],
      catalogue,
      granted,
      namespaceAccess: new NamespaceAccessCache(authorizer, clock),
      client,
      kinds,
      namespace,
      otherGroups: [configGroupVersion, iamGroupVersion, ...loggingGroups],
    }),
    ...configRoutes({ externalURL: () => live.value.gateway.externalURL, authority: () => certificate.value.ca }),
    ...iamRoutes({ ...parts, release: { namespace, configMap: flags.configMap } }),
    ...loggingRoutes(parts.logging),
    ...customResourcesRoutes(parts),
    ...docsRoutes(parts),
  ];
  return [...routes, ...platformRoutes({ ...parts, routes })];
}

function aggregatedRoutes(parts: Parts): readonly Route[] {
  const { authorizer, health, logging, version } = parts;
  const groupRoutes = [
    ...apisRoutes({ authorizer, resources: [parts.nodesCache], otherGroups: [loggingGroupVersion] }),
    ...aggregatedLoggingRoutes(logging),
  ];
  const routes = [
    ...health.routes,
    metricsRoute,
    versionRoute('/version', version),
    ...groupRoutes,
    ...openapiRoutes({ ...parts, routes: groupRoutes, resources: [describedResource(nodes)], kinds: [logQueryKind] }),
  ];
  return [...routes, indexRoute(routes)];
}

/** Builds the HTTP handlers: `gateway` serves clients, `aggregated` serves kube-apiserver. */
function buildHttpHandlers(parts: Parts): { readonly gateway: HttpHandler; readonly aggregated: HttpHandler } {
  const { live } = parts;
  const shared = {
    ...parts,
    requests: () => live.value.requests,
    requestSampling: () => live.value.log.requestSampling,
  };
  const gatewayHandler = createHttpHandler(gatewayRoutes(parts), {
    ...shared,
    authenticator: parts.gatewayAuthentication,
    gateway: gateway(parts),
    home: accountPath,
    publicURL: () => publicURL(live.value),
    strictTransport: () => live.value.gateway,
  });
  const aggregated = createHttpHandler(aggregatedRoutes(parts), {
    ...shared,
    authenticator: parts.aggregatedAuthentication,
  });
  return { gateway: gatewayHandler, aggregated };
}

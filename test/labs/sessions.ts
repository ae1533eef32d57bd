/** Creates replicas with the same in-memory cluster. Each replica has its own cache of the sessions. */
import { afterEach } from '@jest/globals';
import { RefreshTokens } from '../../src/tokens/refresh-tokens.ts';
import type { SessionLifetimes } from '../../src/tokens/sessions/lifetimes.ts';
import type { Redeemed, Unredeemed } from '../../src/tokens/sessions/codes.ts';
import type { Refreshed } from '../../src/tokens/sessions/rotation.ts';
import type { Session } from '../../src/tokens/sessions/session.ts';
import { retryIfChanged } from '../../src/tokens/sessions/session-store.ts';
import { Sessions } from '../../src/tokens/sessions/sessions.ts';
import { unreachable } from '../../src/cluster/client/kube-error.ts';
import { createLogger } from '../../src/runtime/logger.ts';
import { MemoryCluster, type MemoryClient } from '../fakes/cluster.ts';
import { FakeClock, settle } from './cluster-fakes.ts';

const namespace = 'platform-system';
export const path = `/apis/iam.platform.io/v1alpha2/namespaces/${namespace}/sessions`;
export const second = 1_000;
export const minute = 60 * second;
export const lifetimes = {
  refreshTokenIdle: 30 * minute,
  refreshGrace: 10 * second,
  sessionMaxAge: 120 * minute,
  accessTokenMaxAge: 60 * minute,
};
export const login = { userName: 'alice', userUID: 'uid-alice', clientID: 'platform', credentialID: 'c1' };
export const tokens = new RefreshTokens(Buffer.alloc(32, 7));
const always = (): boolean => true;
const never = (): boolean => false;

export interface Replica {
  readonly sessions: Sessions;
  readonly client: MemoryClient;
  /** IDs of the sessions that were reported as revoked or deleted. */
  readonly ended: string[];
}

export interface Lab {
  readonly cluster: MemoryCluster;
  readonly clock: FakeClock;
  /** Starts a replica. `prepare` gets the client of the replica before the replica reads from the cluster. */
  readonly replica: (prepare?: (client: MemoryClient) => void) => Promise<Replica>;
}

const running: Sessions[] = [];
afterEach(() => {
  for (const sessions of running.splice(0)) sessions.stop();
});

export const silent = createLogger({ silent: true });

export function lab(chosen: SessionLifetimes = lifetimes, log = silent, maySweep = always): Lab {
  const clock = new FakeClock();
  const cluster = new MemoryCluster(clock);
  return {
    cluster,
    clock,
    replica: async (prepare) => {
      const client = cluster.client();
      prepare?.(client);
      const parts = { client, namespace, lifetimes: () => chosen, tokens, isDismissed: never, clock, log };
      const sessions = new Sessions({ ...parts, maySweep });
      const ended: string[] = [];
      sessions.ended.subscribe((sid) => ended.push(sid));
      running.push(sessions);
      sessions.start();
      await settle();
      return { sessions, client, ended };
    },
  };
}

/** Finds and uses a refresh token, as the token endpoint does. */
export const refresh = (sessions: Sessions, token: string): Promise<Refreshed | 'unknown' | 'reused' | 'ended'> =>
  retryIfChanged(async (isRetry) => {
    const found = await sessions.rotation.find(token, login.clientID, isRetry);
    return typeof found === 'string' ? found : await found.use();
  });

/** Finds and uses a code of this client, as the token endpoint does. */
export const redeem = (
  sessions: Sessions,
  code: string,
  { clientID = login.clientID, isRefreshable = true } = {},
): Promise<Redeemed | Unredeemed> =>
  retryIfChanged(async (isRetry) => {
    const found = await sessions.codes.find(code, clientID, isRetry);
    return typeof found === 'string' ? found : await found.use(isRefreshable);
  });

export async function granted(sessions: Sessions, token: string): Promise<string> {
  const refreshed = await refresh(sessions, token);
  if (typeof refreshed === 'string') throw new Error(`the refresh was rejected: ${refreshed}`);
  return refreshed.refreshToken;
}

export const stored = (cluster: MemoryCluster): Session[] => cluster.list(path) as unknown as Session[];
export const namesIn = (cluster: MemoryCluster): string[] => stored(cluster).map(({ metadata }) => metadata.name);

/** Makes requests of this method fail before they reach the cluster. */
export const failing =
  (method: string, failure = unreachable(new Error('reset'))) =>
  (request: { method: string }): void => {
    if (request.method === method) throw failure;
  };

/** Replicas over one cluster in memory, each with the sessions as it knows them. */
import { afterEach } from '@jest/globals';
import { RefreshTokens } from '../../src/tokens/refresh-tokens.ts';
import type { SessionLives } from '../../src/tokens/sessions/lifetimes.ts';
import type { Session } from '../../src/tokens/sessions/session.ts';
import { Sessions } from '../../src/tokens/sessions/sessions.ts';
import { unreachable } from '../../src/cluster/client/kube-error.ts';
import { createLogger } from '../../src/runtime/logger.ts';
import { MemoryCluster, type MemoryClient } from '../fakes/cluster.ts';
import { FakeClock, settle } from './cluster-fakes.ts';

const namespace = 'platform-system';
export const path = `/apis/iam.platform.io/v1alpha2/namespaces/${namespace}/sessions`;
export const second = 1_000;
export const minute = 60 * second;
export const lives = {
  refreshTokenIdle: 30 * minute,
  refreshGrace: 10 * second,
  sessionMaxAge: 120 * minute,
  accessTokenMaxAge: 60 * minute,
};
export const login = { userName: 'alice', userUID: 'uid-alice', clientID: 'platform', credentialID: 'c1' };
export const tokens = new RefreshTokens(Buffer.alloc(32, 7));
export const always = (): boolean => true;
const never = (): boolean => false;

export interface Replica {
  readonly sessions: Sessions;
  readonly client: MemoryClient;
  /** The ids of the sessions that it was told have ended. */
  readonly ended: string[];
}

export interface Lab {
  readonly cluster: MemoryCluster;
  readonly clock: FakeClock;
  /** `prepare` gets its client before anything is read. */
  readonly replica: (prepare?: (client: MemoryClient) => void) => Promise<Replica>;
}

const running: Sessions[] = [];
afterEach(() => {
  for (const sessions of running.splice(0)) sessions.stop();
});

export const silent = createLogger({ silent: true });

export function lab(chosen: SessionLives = lives, log = silent, maySweep = always): Lab {
  const clock = new FakeClock();
  const cluster = new MemoryCluster(clock);
  return {
    cluster,
    clock,
    replica: async (prepare) => {
      const client = cluster.client();
      prepare?.(client);
      const parts = { client, namespace, lives: () => chosen, tokens, isDismissed: never, clock, log };
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

export async function granted(sessions: Sessions, token: string): Promise<string> {
  const refreshed = await sessions.rotation.refresh(token, always);
  if (typeof refreshed === 'string') throw new Error(`the refresh was refused: ${refreshed}`);
  return refreshed.refreshToken;
}

export const stored = (cluster: MemoryCluster): Session[] => cluster.list(path) as unknown as Session[];
export const namesIn = (cluster: MemoryCluster): string[] => stored(cluster).map(({ metadata }) => metadata.name);

/** Requests of this method do not reach the cluster. */
export const failing =
  (method: string, failure = unreachable(new Error('reset'))) =>
  (request: { method: string }): void => {
    if (request.method === method) throw failure;
  };

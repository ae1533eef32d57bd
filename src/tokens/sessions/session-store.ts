/**
 * The Sessions known to this replica: those delivered by the watch and those just written by this replica. Sessions
 * that are unknown, or whose state must be certain, are read from the cluster.
 */
import { BoundedCache, InProgress } from '../../runtime/bounded-cache.ts';
import { iamAPIVersion, sessionsPath } from '../../config/names.ts';
import { serviceUnavailable } from '../../runtime/errors.ts';
import { NameIndex } from '../../runtime/name-index.ts';
import type { KubeClient } from '../../cluster/client/client.ts';
import type { Clock } from '../../runtime/time.ts';
import { Informer } from '../../cluster/cache/informer.ts';
import type { Logger } from '../../runtime/logger.ts';
import { Topic } from '../../runtime/lifecycle.ts';
import { SessionRequests } from './requests.ts';
import type { Session, SessionSpec } from './session.ts';

/**
 * Milliseconds without data from the watch until the cache counts as stale, because it may miss a revocation
 * (docs/security.md).
 */
const maxSilence = 15_000;
/**
 * Seconds until a watch is renewed. Only a new response to the watch, and no other request, proves that the watch
 * works.
 */
const watchSeconds = 5;
/** Milliseconds for which a session that was not found is not read again. */
const unknownLife = 2_000;

export class SessionStore {
  /** Publishes the name of each session that any replica revokes or deletes. */
  readonly ended = new Topic<string>();
  readonly #namespace: string;
  readonly #requests: SessionRequests;
  readonly #informer: Informer<Session>;
  readonly #clock: Clock;
  /** Sessions just written by this replica, until the watch delivers them; 'deleted' for deleted sessions. */
  readonly #written: BoundedCache<Session | 'deleted'>;
  /** Session names by the UID of the user, including expired and revoked sessions. */
  readonly #ofUser = new NameIndex();
  /** Reads in progress, by session name. */
  readonly #reads = new InProgress<Promise<Session | undefined>>('session_reads');
  /** Names that reads did not find. */
  readonly #unknown: BoundedCache<true>;

  constructor(options: { client: KubeClient; namespace: string; clock: Clock; log: Logger }) {
    this.#namespace = options.namespace;
    this.#clock = options.clock;
    const limits = { maxEntries: 10_000, maxBytes: 32 * 1024 * 1024, clock: () => this.#clock.now() };
    this.#written = new BoundedCache({
      ...limits,
      name: 'written_sessions',
      ttl: 60_000,
      sizeOf: (session) => JSON.stringify(session).length,
    });
    this.#unknown = new BoundedCache({ ...limits, name: 'unknown_sessions', ttl: unknownLife });
    this.#requests = new SessionRequests(options);
    this.#informer = new Informer<Session>({ ...options, path: sessionsPath(options.namespace), watchSeconds });
    this.#informer.onChange((type, session) => {
      // Names are never reused, so a session that this replica has written must not replace a deleted session.
      if (type === 'DELETED') this.#written.set(session.metadata.name, 'deleted');
      if (type === 'DELETED' || session.status.phase === 'Revoked') this.ended.publish(session.metadata.name);
      if (type === 'DELETED') this.#forget(session);
      else this.#note(session);
    });
  }

  start(): void {
    this.#informer.start();
  }

  stop(): void {
    this.#informer.stop();
  }

  hasSynced(): boolean {
    return this.#informer.hasSynced();
  }

  /** Returns whether the cache is too old to authenticate anyone. */
  isStale(): boolean {
    return this.#clock.now() - this.#informer.lastSignOfLife() > maxSilence;
  }

  /** Returns a session without a read from the cluster. */
  known(sid: string): Session | undefined {
    const written = this.#written.get(sid);
    if (written === 'deleted') return undefined;
    const watched = this.watched(sid);
    if (written === undefined || watched === undefined) return written ?? watched;
    if (versionOf(written) > versionOf(watched)) return written;
    // The watch has delivered a version that is at least as new.
    this.#written.delete(sid);
    return watched;
  }

  /** Returns the session as the watch delivered it, even if this replica has written a newer version. */
  watched(sid: string): Session | undefined {
    return this.#informer.get(this.#namespace, sid);
  }

  /** Returns all sessions that the watch has delivered. */
  allWatched(): readonly Session[] {
    return this.#informer.list();
  }

  /** Returns an upper bound of the number of sessions that `ofUser` returns, without looking them up. */
  countOfUser(userUID: string): number {
    return this.#ofUser.count(userUID);
  }

  /** Returns the known sessions of a user, including expired and revoked sessions. */
  ofUser(userUID: string): Session[] {
    return this.#ofUser
      .get(userUID)
      .map((sid) => this.known(sid))
      .filter((session) => session !== undefined)
      .filter((session) => session.spec.userUID === userUID);
  }

  /** Number of known sessions, including expired and revoked ones. */
  get size(): number {
    return this.#informer.size;
  }

  /** Returns the known sessions of all users, including expired and revoked sessions. */
  ofAll(): Session[] {
    const unwatched = [...this.#written].flatMap(([sid, session]) =>
      session === 'deleted' || this.watched(sid) !== undefined ? [] : [session],
    );
    return [...this.allWatched(), ...unwatched];
  }

  /** Reads a session from the cluster. Concurrent calls share one read. */
  async read(sid: string): Promise<Session | undefined> {
    // Repeated requests with unknown names must not reach kube-apiserver.
    if (this.#unknown.has(sid)) return undefined;
    return await (this.#reads.get(sid) ?? this.readLatest(sid));
  }

  /** Reads a session from the cluster with a new request. */
  async readLatest(sid: string): Promise<Session | undefined> {
    const read = this.#requests.get(sid);
    this.#reads.set(sid, read);
    try {
      const found = await read;
      if (found === undefined) this.#unknown.set(sid, true);
      else this.#unknown.delete(sid);
      return found;
    } finally {
      if (this.#reads.get(sid) === read) this.#reads.delete(sid);
    }
  }

  /** Reads the sessions of a user from the cluster. `at`: list parameters that select the resourceVersion. */
  async readOfUser(
    { userName, userUID }: Pick<SessionSpec, 'userName' | 'userUID'>,
    at: Readonly<Record<string, string | undefined>> = {},
  ): Promise<Session[]> {
    const items = await this.#requests.list({ fieldSelector: `spec.userName=${userName}`, ...at });
    return items.filter(({ spec }) => spec.userUID === userUID);
  }

  async add(name: string, spec: SessionSpec, status: Session['status']): Promise<Session> {
    const session = await this.#requests.post({
      apiVersion: iamAPIVersion,
      kind: 'Session',
      metadata: { name },
      spec,
      status,
    });
    this.#remember(session);
    return session;
  }

  /** Updates the status of a session. Returns undefined if another request changed the session in the meantime. */
  async replace(session: Session, status: Session['status']): Promise<Session | undefined> {
    const updated = await this.#requests.put({ ...session, status });
    if (updated !== undefined) this.#remember(updated);
    return updated;
  }

  /**
   * Revokes a session, even if other requests change it concurrently. Returns after the write. Throws like
   * `retryIfChanged`.
   */
  async revoke(session: Session): Promise<void> {
    await retryIfChanged(async (isRetry) => {
      const current = isRetry ? await this.readLatest(session.metadata.name) : session;
      if (current === undefined || current.status.phase === 'Revoked') return 'revoked';
      return (await this.replace(current, { phase: 'Revoked' })) === undefined ? 'changed' : 'revoked';
    });
  }

  /** Deletes a session unless it was changed in the meantime. */
  async delete(session: Session): Promise<void> {
    if (await this.#requests.delete(session)) this.#written.set(session.metadata.name, 'deleted');
  }

  #remember(session: Session): void {
    const { name } = session.metadata;
    if (this.#written.get(name) === 'deleted') return;
    this.#written.set(name, session);
    this.#note(session);
  }

  #note({ metadata, spec }: Session): void {
    this.#ofUser.add(spec.userUID, metadata.name);
    // The session of a device has no user before a user approves it.
    if (spec.userUID !== '') this.#ofUser.delete('', metadata.name);
  }

  #forget({ metadata, spec }: Session): void {
    this.#ofUser.delete(spec.userUID, metadata.name);
  }
}

const versionOf = ({ metadata }: Session): bigint => BigInt(metadata.resourceVersion ?? 0);

const maxAttempts = 5;

/**
 * Repeats an attempt if another request changed its session or took its name in the meantime. Throws 503 after five
 * attempts.
 */
export async function retryIfChanged<T>(attempt: (isRetry: boolean) => Promise<T | 'changed'>): Promise<T> {
  for (let count = 0; count < maxAttempts; count += 1) {
    const result = await attempt(count > 0);
    if (result !== 'changed') return result;
  }
  throw serviceUnavailable('too many concurrent changes of the session');
}

/**
 * The Sessions as this replica knows them: what the watch has brought, what was just written here, and by a read of the cluster what is
 * unknown or must be certain.
 */
import { BoundedCache, InProgress } from '../../runtime/bounded-cache.ts';
import { iamAPIVersion, sessionsPath } from '../../config/names.ts';
import { serviceUnavailable } from '../../runtime/errors.ts';
import type { KubeClient } from '../../cluster/client/client.ts';
import type { Clock } from '../../runtime/time.ts';
import { Informer } from '../../cluster/cache/informer.ts';
import type { Logger } from '../../runtime/logger.ts';
import { Topic } from '../../runtime/lifecycle.ts';
import { SessionRequests } from './requests.ts';
import type { Session, SessionSpec } from './session.ts';

/** Longest silence of the watch, in milliseconds: a longer one may hide a revocation (docs/security.md). */
const longestSilence = 15_000;
/** So often the watch itself proves that it is alive: any other request would prove something about itself only. */
const watchSeconds = 5;
const unknownLife = 2_000;

export class SessionStore {
  /** The name of a session that was revoked or deleted, on whichever replica. */
  readonly ended = new Topic<string>();
  readonly #namespace: string;
  readonly #requests: SessionRequests;
  readonly #informer: Informer<Session>;
  readonly #clock: Clock;
  /** Sessions just written here, which the watch brings a moment later; 'deleted' once the watch has seen them go. */
  readonly #written: BoundedCache<Session | 'deleted'>;
  /** The sids of each user, also of sessions that are over. */
  readonly #ofUser = new Map<string, Set<string>>();
  /** Live reads under way, by sid. */
  readonly #reads = new InProgress<Promise<Session | undefined>>('session_reads');
  /** The sids that they did not find. */
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
      // A name is never used again: a copy of ours must not bring the session back.
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

  /** What is known here may have changed long ago, and nobody is to be let in by it. */
  isSilent(): boolean {
    return this.#clock.now() - this.#informer.lastSignOfLife() > longestSilence;
  }

  /** Without asking anybody. */
  known(sid: string): Session | undefined {
    const written = this.#written.get(sid);
    if (written === 'deleted') return undefined;
    const watched = this.watched(sid);
    if (written === undefined || watched === undefined) return written ?? watched;
    if (versionOf(written) > versionOf(watched)) return written;
    // The watch has caught up.
    this.#written.delete(sid);
    return watched;
  }

  /** The session that the watch has brought, and no newer one. */
  watched(sid: string): Session | undefined {
    return this.#informer.get(this.#namespace, sid);
  }

  /** All that the watch has brought. */
  allWatched(): readonly Session[] {
    return this.#informer.list();
  }

  /** No fewer than `ofUser` has. */
  countOfUser(userUID: string): number {
    return this.#ofUser.get(userUID)?.size ?? 0;
  }

  /** Those of a user that are known here, also those that are over. */
  ofUser(userUID: string): Session[] {
    return [...(this.#ofUser.get(userUID) ?? [])]
      .map((sid) => this.known(sid))
      .filter((session) => session !== undefined)
      .filter((session) => session.spec.userUID === userUID);
  }

  /** The same of all users. */
  ofAll(): Session[] {
    return [...this.#ofUser.keys()].flatMap((userUID) => this.ofUser(userUID));
  }

  /** Reads it in the cluster, by the one read of all who ask at once. */
  async read(sid: string): Promise<Session | undefined> {
    // Garbage must not reach kube-apiserver at the callers' pace.
    if (this.#unknown.has(sid)) return undefined;
    return await (this.#reads.get(sid) ?? this.readAfresh(sid));
  }

  /** The same by a read that begins now. */
  async readAfresh(sid: string): Promise<Session | undefined> {
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

  /** Reads those of a user in the cluster; `at`: parameters that say in which state of it. */
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

  /** Undefined when somebody else changed the session meanwhile. */
  async replace(session: Session, status: Session['status']): Promise<Session | undefined> {
    const updated = await this.#requests.put({ ...session, status });
    if (updated !== undefined) this.#remember(updated);
    return updated;
  }

  /** Revokes the session, also if others change it meanwhile; returns after the write. Throws as `retryIfChanged`. */
  async end(session: Session): Promise<void> {
    await retryIfChanged(async (isRetry) => {
      const current = isRetry ? await this.readAfresh(session.metadata.name) : session;
      if (current === undefined || current.status.phase === 'Revoked') return 'ended';
      return (await this.replace(current, { phase: 'Revoked' })) === undefined ? 'changed' : 'ended';
    });
  }

  /** Unless somebody has changed it meanwhile. */
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
    const sids = this.#ofUser.get(spec.userUID) ?? new Set();
    this.#ofUser.set(spec.userUID, sids.add(metadata.name));
    // It was nobody's before.
    if (spec.userUID !== '') this.#ofUser.get('')?.delete(metadata.name);
  }

  #forget({ metadata, spec }: Session): void {
    const sids = this.#ofUser.get(spec.userUID);
    sids?.delete(metadata.name);
    if (sids?.size === 0) this.#ofUser.delete(spec.userUID);
  }
}

const versionOf = ({ metadata }: Session): bigint => BigInt(metadata.resourceVersion ?? 0);

const maxAttempts = 5;

/** Repeats an attempt whose session was changed, or whose name was taken, by another request meanwhile. Throws 503 after five of them. */
export async function retryIfChanged<T>(attempt: (isRetry: boolean) => Promise<T | 'changed'>): Promise<T> {
  for (let count = 0; count < maxAttempts; count += 1) {
    const result = await attempt(count > 0);
    if (result !== 'changed') return result;
  }
  throw serviceUnavailable('the session is changed by other requests at the same time');
}

/**
 * Sessions: one object in the cluster per login, watched by every replica and written with compare-and-swap. Any
 * replica can therefore serve any request. A session is active until it is revoked, idle or too old, or its user,
 * password or client is removed (docs/security.md).
 */
import { serviceUnavailable } from '../../runtime/errors.ts';
import type { KubeClient } from '../../cluster/client/client.ts';
import type { Clock } from '../../runtime/time.ts';
import type { Logger } from '../../runtime/logger.ts';
import { Slice } from '../../runtime/slice.ts';
import { hashToken, isSessionID, newSessionID, type RefreshTokens } from '../refresh-tokens.ts';
import { SessionCreation } from './creation.ts';
import { Codes } from './codes.ts';
import { Devices } from './devices.ts';
import { Lifetimes, type SessionLifetimes } from './lifetimes.ts';
import { Rotation } from './rotation.ts';
import { SessionStore } from './session-store.ts';
import { dismissedBy, type Dismissed, type Session, type SessionSpec } from './session.ts';
import { Sweeper } from './sweeper.ts';

/** A session to create. The store sets its times. */
export type NewSession = Omit<SessionSpec, 'createdAt' | 'expiresAt' | 'code'>;

export class Sessions {
  /** Publishes the name of each session that any replica revokes or deletes. */
  readonly ended: SessionStore['ended'];
  /** Use of refresh tokens. */
  readonly rotation: Rotation;
  /** Sessions that start with a code. */
  readonly codes: Codes;
  readonly devices: Devices;
  readonly #store: SessionStore;
  readonly #lifetimes: Lifetimes;
  readonly #creation: SessionCreation;
  readonly #sweeper: Sweeper;
  readonly #tokens: RefreshTokens;
  readonly #clock: Clock;
  readonly #log: Logger;
  #dismissing: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor({
    lifetimes: settings,
    clock,
    ...options
  }: {
    client: KubeClient;
    namespace: string;
    lifetimes: () => SessionLifetimes;
    tokens: RefreshTokens;
    /** Options of Sweeper. */
    maySweep: () => boolean;
    isDismissed: (spec: SessionSpec) => boolean;
    clock: Clock;
    log: Logger;
  }) {
    const store = new SessionStore({ ...options, clock });
    const lifetimes = new Lifetimes(settings, clock);
    const parts = { ...options, clock, store, lifetimes };
    this.#store = store;
    this.ended = store.ended;
    this.#lifetimes = lifetimes;
    this.#creation = new SessionCreation(parts);
    this.#sweeper = new Sweeper(parts);
    this.rotation = new Rotation(parts);
    this.codes = new Codes({ ...parts, creation: this.#creation });
    this.devices = new Devices({ ...parts, codes: this.codes });
    this.#tokens = options.tokens;
    this.#clock = clock;
    this.#log = options.log;
  }

  start(): void {
    this.#store.start();
    this.#sweeper.start();
  }

  stop(): void {
    this.#isStopped = true;
    this.#sweeper.stop();
    this.#store.stop();
  }

  problem(): string {
    return this.#store.hasSynced() ? '' : 'not read yet';
  }

  /**
   * Creates a session with its first refresh token and returns after the write. Deletes the oldest sessions of a user
   * who has too many.
   */
  async create(spec: NewSession): Promise<{ session: Session; refreshToken: string }> {
    const name = newSessionID();
    const refreshToken = this.#tokens.first(name);
    const until = this.#clock.now() + this.#lifetimes.settings.sessionMaxAge;
    const status = { phase: 'Active', currentHash: hashToken(refreshToken) } as const;
    return { session: await this.#creation.create(name, spec, until, status), refreshToken };
  }

  /**
   * Creates a session that expires with its only access token, and no later than `until` (milliseconds since the
   * epoch).
   */
  async createFixed(spec: NewSession, until = Infinity): Promise<Session> {
    const end = Math.min(until, this.#clock.now() + this.#lifetimes.settings.accessTokenMaxAge);
    return await this.#creation.create(newSessionID(), spec, end, { phase: 'Active' });
  }

  /**
   * Returns the session if it is active. An unknown session is read from the cluster once for all concurrent requests,
   * so a login on another replica takes effect at once. Throws 503 if the cache is stale.
   */
  async active(sid: string): Promise<Session | undefined> {
    if (this.#store.isStale()) throw serviceUnavailable('sessions cannot be read at the moment');
    if (!isSessionID(sid)) return undefined;
    const session = this.#store.known(sid) ?? (await this.#store.read(sid));
    return session !== undefined && this.#lifetimes.isActive(session) ? session : undefined;
  }

  /**
   * Returns a cached session if it is active. Returns undefined if the session is not cached, or the cache is stale.
   */
  known(sid: string): Session | undefined {
    const session = this.#store.isStale() ? undefined : this.#store.known(sid);
    return session !== undefined && this.#lifetimes.isActive(session) ? session : undefined;
  }

  /** Returns the user's active sessions that are known to this replica. */
  ofUser(userUID: string): Session[] {
    return this.#store.ofUser(userUID).filter((session) => this.#lifetimes.isActive(session));
  }

  /**
   * Stores the consents of a browser login. If the session was changed in the meantime, the consents are lost and the
   * user is asked again.
   */
  async setConsents(session: Session, consents: readonly string[]): Promise<void> {
    await this.#store.replace(session, { ...session.status, consents });
  }

  /** Revokes a session and returns after the write. An unknown or revoked session is not an error. */
  async revoke(sid: string): Promise<void> {
    const session = await this.#store.readLatest(sid);
    if (session !== undefined) await this.#store.revoke(session);
  }

  /**
   * Revokes all other sessions that the user had when `create` wrote this session. Returns after the writes. The
   * cluster orders all writes, so each of several concurrent logins revokes only the earlier ones, and only the last
   * login remains.
   */
  async revokeOthers({ metadata: { name, resourceVersion }, spec }: Session): Promise<void> {
    const all = await this.#readLive(spec, { resourceVersion, resourceVersionMatch: 'Exact' });
    const others = all.filter((other) => other.metadata.name !== name);
    await Promise.all(others.map((other) => this.revoke(other.metadata.name)));
  }

  /**
   * Revokes all sessions of a user except `except`, including sessions just created on another replica. Returns the
   * number of revoked sessions after the writes.
   */
  async revokeAll(user: Pick<SessionSpec, 'userName' | 'userUID'>, except?: string): Promise<number> {
    const all = (await this.#readLive(user)).filter(({ metadata }) => metadata.name !== except);
    await Promise.all(all.map(({ metadata }) => this.revoke(metadata.name)));
    return all.length;
  }

  /** Reads the active and pending sessions of a user from the cluster. */
  async #readLive(...query: Parameters<SessionStore['readOfUser']>): Promise<Session[]> {
    return (await this.#store.readOfUser(...query)).filter((one) => !this.#lifetimes.isOver(one));
  }

  /** Number of sessions known to this replica, including expired and revoked ones. */
  get size(): number {
    return this.#store.size;
  }

  /**
   * Permanently revokes the matching sessions known to this replica, one after the other. Every replica does so. The
   * sweeper deletes sessions that cannot be revoked now. Never rejects.
   */
  async dismiss(dismissed: readonly Dismissed[]): Promise<void> {
    const isDismissed = dismissedBy(dismissed);
    const before = this.#dismissing;
    const revokeEach = async (): Promise<void> => {
      const names = await this.#find(dismissed, isDismissed);
      await before;
      const slice = new Slice();
      for (const name of names) {
        if (slice.isOver) await slice.next();
        if (this.#isStopped) return;
        // Another replica may have revoked the session in the meantime.
        const session = this.#store.known(name);
        if (session === undefined || !isDismissed(session.spec) || this.#lifetimes.isOver(session)) continue;
        try {
          await this.revoke(name);
        } catch (error) {
          this.#log.warn('permanent revocation of a session failed', { error });
        }
      }
    };
    await (this.#dismissing = revokeEach());
  }

  /** Returns the names of the sessions that exist now and match. Works in slices. */
  async #find(dismissed: readonly Dismissed[], isDismissed: (spec: SessionSpec) => boolean): Promise<string[]> {
    const users = new Set(dismissed.map(({ userUID }) => userUID));
    const known = users.has(undefined)
      ? this.#store.ofAll()
      : [...users].flatMap((uid = '') => this.#store.ofUser(uid));
    const names: string[] = [];
    const slice = new Slice();
    for (const { metadata, spec } of known) {
      if (slice.isOver) await slice.next();
      if (isDismissed(spec)) names.push(metadata.name);
    }
    return names;
  }
}

/**
 * Sessions: one object in the cluster per login, watched by every replica and written with compare-and-swap, so any replica serves any
 * request. A session ends when it is revoked, idle or too old, or when its user, password or client is gone (docs/security.md).
 */
import { serviceUnavailable } from '../../runtime/errors.ts';
import type { KubeClient } from '../../cluster/client/client.ts';
import type { Clock } from '../../runtime/time.ts';
import type { Logger } from '../../runtime/logger.ts';
import { hashToken, isSessionID, newSessionID, type RefreshTokens } from '../refresh-tokens.ts';
import { SessionCreation } from './creation.ts';
import { Codes } from './codes.ts';
import { Devices } from './devices.ts';
import { Lifetimes, type SessionLives } from './lifetimes.ts';
import { Rotation } from './rotation.ts';
import { SessionStore } from './session-store.ts';
import { isAmong, type Dismissed, type Session, type SessionSpec } from './session.ts';
import { Sweeper } from './sweeper.ts';

/** Whoever begins one does not say when. */
export type NewSession = Omit<SessionSpec, 'createdAt' | 'expiresAt' | 'code'>;

export class Sessions {
  /** The name of a session that was revoked or deleted, on whichever replica. */
  readonly ended: SessionStore['ended'];
  /** How refresh tokens are used. */
  readonly rotation: Rotation;
  /** What begins by a code, and by that of a device. */
  readonly codes: Codes;
  readonly devices: Devices;
  readonly #store: SessionStore;
  readonly #lives: Lifetimes;
  readonly #beginnings: SessionCreation;
  readonly #sweeper: Sweeper;
  readonly #tokens: RefreshTokens;
  readonly #clock: Clock;
  readonly #log: Logger;
  #dismissing: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor({
    lives: settings,
    clock,
    ...options
  }: {
    client: KubeClient;
    namespace: string;
    lives: () => SessionLives;
    tokens: RefreshTokens;
    /** See Sweeper. */
    maySweep: () => boolean;
    isDismissed: (spec: SessionSpec) => boolean;
    clock: Clock;
    log: Logger;
  }) {
    const store = new SessionStore({ ...options, clock });
    const lives = new Lifetimes(settings, clock);
    const parts = { ...options, clock, store, lives };
    this.#store = store;
    this.ended = store.ended;
    this.#lives = lives;
    this.#beginnings = new SessionCreation(parts);
    this.#sweeper = new Sweeper(parts);
    this.rotation = new Rotation(parts);
    this.codes = new Codes({ ...parts, beginnings: this.#beginnings });
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

  /** A new session and its first refresh token; returns after the write. The user's oldest one ends where there are too many. */
  async create(spec: NewSession): Promise<{ session: Session; refreshToken: string }> {
    const name = newSessionID();
    const refreshToken = this.#tokens.first(name);
    const until = this.#clock.now() + this.#lives.settings.sessionMaxAge;
    const status = { phase: 'Active', currentHash: hashToken(refreshToken) } as const;
    return { session: await this.#beginnings.begin(name, spec, until, status), refreshToken };
  }

  /** The same for one access token: without a refresh token, and over with it, at `until` at the latest (milliseconds since the epoch). */
  async createFixed(spec: NewSession, until = Infinity): Promise<Session> {
    const end = Math.min(until, this.#clock.now() + this.#lives.settings.accessTokenMaxAge);
    return await this.#beginnings.begin(newSessionID(), spec, end, { phase: 'Active' });
  }

  /**
   * The session if it is active. An unknown sid costs one live read, shared by those who ask at once, so a login on another
   * replica counts at once. Throws 503 when the watch has been silent for too long to be believed.
   */
  async active(sid: string): Promise<Session | undefined> {
    if (this.#store.isSilent()) throw serviceUnavailable('the state of sessions cannot be read from the cluster now');
    if (!isSessionID(sid)) return undefined;
    const session = this.#store.known(sid) ?? (await this.#store.read(sid));
    return session !== undefined && this.#lives.isActive(session) ? session : undefined;
  }

  /** The same without asking anybody: undefined for a session that is not active, not known here or not to be judged now. */
  known(sid: string): Session | undefined {
    const session = this.#store.isSilent() ? undefined : this.#store.known(sid);
    return session !== undefined && this.#lives.isActive(session) ? session : undefined;
  }

  /** The active sessions of a user as this replica knows them. */
  ofUser(userUID: string): Session[] {
    return this.#store.ofUser(userUID).filter((session) => this.#lives.isActive(session));
  }

  /** What the user of a login to our pages lets clients have. If it was changed meanwhile, nothing: they are asked again. */
  async setConsents(session: Session, consents: readonly string[]): Promise<void> {
    await this.#store.replace(session, { ...session.status, consents });
  }

  /** Ends a session; returns after the write. An unknown or ended one is no error. */
  async revoke(sid: string): Promise<void> {
    const session = await this.#store.readAfresh(sid);
    if (session !== undefined) await this.#store.end(session);
  }

  /**
   * Ends whatever else the user had when this session, as `create` answered it, was written; returns after that. The cluster puts all
   * writes in one order, so of logins at one instant on many replicas each ends those before it, and the last one alone stays: none sees
   * a later one, nor what that one has begun since.
   */
  async endOthers({ metadata: { name, resourceVersion }, spec }: Session): Promise<void> {
    const all = await this.#unended(spec, { resourceVersion, resourceVersionMatch: 'Exact' });
    const others = all.filter((other) => other.metadata.name !== name);
    await Promise.all(others.map((other) => this.revoke(other.metadata.name)));
  }

  /**
   * Ends whatever the user has in the cluster, but for one if that is to stay; also what was begun on another replica a moment ago. Returns
   * how many after the writes.
   */
  async endAll(user: Pick<SessionSpec, 'userName' | 'userUID'>, but?: string): Promise<number> {
    const all = (await this.#unended(user)).filter(({ metadata }) => metadata.name !== but);
    await Promise.all(all.map(({ metadata }) => this.revoke(metadata.name)));
    return all.length;
  }

  /** What is active of a user, and what waits: a code would begin a session. By a read of the cluster. */
  async #unended(...whose: Parameters<SessionStore['readOfUser']>): Promise<Session[]> {
    return (await this.#store.readOfUser(...whose)).filter((one) => !this.#lives.isOver(one));
  }

  /**
   * Ends for good what this replica knows of them, one session after the other. Every replica does so, and what none can end now the
   * sweep does later. Never rejects.
   */
  async dismiss(dismissed: Dismissed): Promise<void> {
    const { userUID } = dismissed;
    const known = userUID === undefined ? this.#store.ofAll() : this.#store.ofUser(userUID);
    const all = known.filter(({ spec }) => isAmong(spec, dismissed));
    const before = this.#dismissing;
    const end = async (): Promise<void> => {
      await before;
      for (const { metadata } of all) {
        // Another replica may have been here meanwhile.
        const session = this.#store.known(metadata.name);
        if (this.#isStopped || session === undefined || this.#lives.isOver(session)) continue;
        try {
          await this.revoke(metadata.name);
        } catch (error) {
          this.#log.warn('a session that is over for good could not be revoked', { error });
        }
      }
    };
    await (this.#dismissing = end());
  }
}

/**
 * Sessions: one object in the cluster a login, watched by every replica and written with compare-and-swap, so any replica serves
 * any request (DESIGN.md 8). A session is over when it is revoked, idle or too old, or when its user, password or client went.
 */
import { LRUCache } from 'lru-cache';
import { sessionsPath } from '../config/names.ts';
import { serviceUnavailable, tooManyRequests, type StatusError } from '../errors.ts';
import type { KubeClient, KubeRequest } from '../kube/client.ts';
import { rfc3339, systemClock, type Clock } from '../kube/clock.ts';
import { createInformer, type Informer, type KubeObject } from '../kube/informer.ts';
import { isKubeError, KubeError } from '../kube/kube-error.ts';
import type { Logger } from '../logger.ts';
import type { Dismissed } from './directory.ts';
import { hostOf } from './host-of.ts';
import type { Identity } from './identity-providers/person.ts';
import { hashToken, isSessionID, newSessionID, sameHash, type RefreshTokens } from './refresh-tokens.ts';
import { UnderWay } from './under-way.ts';

/** What a session waits for in phase Pending. */
export interface SessionCode {
  /** Of the code that redeems it, once. */
  readonly hash: string;
  /** RFC 3339: not any more from then on. */
  readonly redeemBefore: string;
  /** Of an authorization code: what must come with it (RFC 6749 section 4.1.3, RFC 7636 section 4.6). */
  readonly redirectURI?: string;
  readonly challenge?: string;
  /** OpenID Connect Core section 3.1.2.1. */
  readonly nonce?: string;
  /** Of a device code: where it was asked from. */
  readonly sourceIP?: string;
  /** When the user last showed who they are. RFC 3339. */
  readonly authenticatedAt?: string;
  /** The sid of the login to our pages that it was given for: both end together, until the code is redeemed. */
  readonly login?: string;
}

export interface SessionSpec {
  /** Whose session it is; a user of the directory's unless it says otherwise. */
  readonly subjectKind?: 'Client' | 'ServiceAccount';
  /** Empty while a device waits for somebody to let it in; so is the UID. */
  readonly userName: string;
  readonly userUID: string;
  readonly clientID: string;
  readonly scope?: string;
  /** Of a user who has logged in with a password of ours. */
  readonly credentialID?: string;
  /** Of a user who has logged in at an identity provider: who that is there. */
  readonly identity?: Identity;
  /** Of a ServiceAccount, as kube-apiserver told them; of a user, those that the identity provider told at the login. */
  readonly groups?: readonly string[];
  /** Of a user: where they logged in, and by which program. */
  readonly sourceIP?: string;
  readonly userAgent?: string;
  /** Of one that is begun by a code. */
  readonly code?: SessionCode;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly expiresAt: string;
}

export interface Session extends KubeObject {
  readonly spec: SessionSpec;
  readonly status: {
    readonly phase: 'Pending' | 'Active' | 'Revoked';
    readonly currentHash?: string;
    readonly previousHash?: string;
    readonly rotatedAt?: string;
    readonly lastUsedAt?: string;
    /** Of a login to our pages: which clients the user lets have what, each as `client scope scope`. */
    readonly consents?: readonly string[];
  };
}

type NewCode = Omit<SessionCode, 'hash' | 'redeemBefore'>;

/** Whose a session is, and by what they logged in: the same for what that login lets in. */
export const holderOf = ({
  userName,
  userUID,
  credentialID,
  identity,
  groups,
  sourceIP,
  userAgent,
}: SessionSpec): Holder => ({
  userName,
  userUID,
  ...(credentialID === undefined ? {} : { credentialID }),
  ...(identity === undefined ? {} : { identity }),
  ...(groups === undefined ? {} : { groups }),
  ...(sourceIP === undefined ? {} : { sourceIP }),
  ...(userAgent === undefined ? {} : { userAgent }),
});

type Holder = Pick<
  SessionSpec,
  'userName' | 'userUID' | 'credentialID' | 'identity' | 'groups' | 'sourceIP' | 'userAgent'
>;

/** Whoever begins one does not say when. */
export type NewSession = Omit<SessionSpec, 'createdAt' | 'expiresAt' | 'code'>;

/** Lives in milliseconds. */
export interface SessionLives {
  readonly refreshTokenIdle: number;
  readonly refreshGrace: number;
  readonly sessionMaxAge: number;
  readonly accessTokenMaxAge: number;
}

const apiVersion = 'iam.platform.io/v1alpha2';
/** A watch that was silent for so long may hide a revocation (API.md 2). */
const longestSilence = 15_000;
/** So often the watch itself proves that it is alive: any other request would prove something about itself only. */
const watchSeconds = 5;
const unknownLife = 2_000;
const sweepInterval = 60_000;
/** After so many failures a sweep is given up: the next one tries again. */
const mostSweepFailures = 10;
/**
 * Shorter than the grace of a refresh: an honest client whose refresh hung is told to try again while the successor is still
 * to be had.
 */
const longestAnswer = 3_000;
/** So long a refresh that the cluster did not answer is remembered: it may have been written all the same, once the cluster was back. */
const unansweredLife = 600_000;
/**
 * Live sessions of one user: who logs in without end fills neither the cluster nor the memory of the replicas. A program has many
 * instances, each of which logs in.
 */
const mostOfUser = 100;
const mostOfProgram = 1_000;
const endedAtLogin = 10;
/** Of one user, codes that nobody has redeemed yet. */
const mostPending = 20;
/** Devices that wait to be let in: whoever has them wait proves nothing. */
const mostDevices = 1_000;
const mostDevicesOfAddress = 20;

/** 'waiting': for somebody who lets the device in; 'refused': by that person. */
export type Unredeemed = 'unknown' | 'ended' | 'reused' | 'waiting' | 'refused';

export interface Redeemed {
  readonly session: Session;
  /** None where nobody may refresh. */
  readonly refreshToken?: string;
}

export type Refreshed = { readonly session: Session; readonly refreshToken: string } | 'unknown' | 'reused' | 'ended';

export class Sessions {
  readonly #client: KubeClient;
  readonly #path: string;
  readonly #lives: () => SessionLives;
  readonly #tokens: RefreshTokens;
  readonly #maySweep: () => boolean;
  readonly #isDismissed: (spec: SessionSpec) => boolean;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #informer: Informer<Session>;
  /** Sessions just written here, which the watch brings a moment later; 'deleted' once the watch has seen them go. */
  readonly #written = new LRUCache<string, Session | 'deleted'>({ max: 10_000, ttl: 60_000 });
  /** The sids of each user, also of sessions that are over. */
  readonly #ofUser = new Map<string, Set<string>>();
  /** Live reads under way, and the names that they did not find, by sid. */
  readonly #reads = new Map<string, Promise<Session | undefined>>();
  /** Hashes of refresh tokens whose rotation got no answer here, and when. */
  readonly #unanswered = new LRUCache<string, number>({ max: 10_000 });
  /** Devices that are being written, by the host that asks and in all. */
  readonly #devices = new UnderWay();
  readonly #namespace: string;
  #dismissing: Promise<void> = Promise.resolve();
  #stopSweeping: () => void = () => undefined;
  #isStopped = false;
  readonly #ended = new Set<(sid: string) => void>();

  constructor(options: {
    client: KubeClient;
    namespace: string;
    lives: () => SessionLives;
    tokens: RefreshTokens;
    /** Whether it is for this replica to delete what is over. */
    maySweep: () => boolean;
    /** Whether those whom it was made for are not to come back to it, for certain. */
    isDismissed: (spec: SessionSpec) => boolean;
    clock?: Clock;
    log: Logger;
  }) {
    this.#client = options.client;
    this.#namespace = options.namespace;
    this.#path = sessionsPath(options.namespace);
    this.#lives = options.lives;
    this.#tokens = options.tokens;
    this.#maySweep = options.maySweep;
    this.#isDismissed = options.isDismissed;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log;
    this.#informer = createInformer<Session>({
      client: options.client,
      path: this.#path,
      log: options.log,
      clock: this.#clock,
      watchSeconds,
    });
    this.#informer.onChange((type, session) => {
      // A name is never used again: a copy of ours must not bring the session back.
      if (type === 'DELETED') this.#written.set(session.metadata.name, 'deleted');
      if (type === 'DELETED' || session.status.phase === 'Revoked')
        for (const tell of this.#ended) tell(session.metadata.name);
      if (type === 'DELETED') this.#forget(session);
      else this.#note(session);
    });
  }

  start(): void {
    this.#informer.start();
    this.#sweepLater();
  }

  stop(): void {
    this.#isStopped = true;
    this.#stopSweeping();
    this.#informer.stop();
  }

  hasSynced(): boolean {
    return this.#informer.hasSynced();
  }

  /** Told when a session was revoked or deleted, on whichever replica. */
  onEnd(tell: (sid: string) => void): () => void {
    this.#ended.add(tell);
    return () => this.#ended.delete(tell);
  }

  /** A new session and its first refresh token; returns after the write. The user's oldest one ends where there are too many. */
  async create(spec: NewSession): Promise<{ session: Session; refreshToken: string }> {
    const name = newSessionID();
    const refreshToken = this.#tokens.first(name);
    const until = this.#clock.now() + this.#lives().sessionMaxAge;
    const session = await this.#begin(name, spec, until, { phase: 'Active', currentHash: hashToken(refreshToken) });
    return { session, refreshToken };
  }

  /** The same for one access token: without a refresh token, and over with it, at `until` at the latest (milliseconds since the epoch). */
  async createFixed(spec: NewSession, until = Infinity): Promise<Session> {
    const end = Math.min(until, this.#clock.now() + this.#lives().accessTokenMaxAge);
    return await this.#begin(newSessionID(), spec, end, { phase: 'Active' });
  }

  /**
   * A session that begins when its code is redeemed, within `life` milliseconds; the code is the answer. `refreshable`: as long as one
   * with a refresh token.
   */
  async createPending(
    spec: NewSession & { readonly code: NewCode },
    life: number,
    refreshable: boolean,
  ): Promise<string> {
    return await this.#beginPending(newSessionID(), spec, life, refreshable);
  }

  async #beginPending(
    name: string,
    { code, ...spec }: NewSession & { readonly code: NewCode },
    life: number,
    refreshable: boolean,
  ): Promise<string> {
    const token = this.#tokens.first(name);
    const now = this.#clock.now();
    const { sessionMaxAge, accessTokenMaxAge } = this.#lives();
    const until = Math.min(
      now + (refreshable ? sessionMaxAge : accessTokenMaxAge),
      code.authenticatedAt === undefined ? Infinity : this.#oldest(code.authenticatedAt),
    );
    const waiting = { ...code, hash: hashToken(token), redeemBefore: rfc3339(now + life) };
    await this.#begin(name, { ...spec, code: waiting }, until, { phase: 'Pending' });
    return token;
  }

  /**
   * RFC 8628: a session that begins when somebody types in `userCode` and lets the device in, and the device asks with its code, which is
   * the answer. The same user code names it on every replica. Throws 429 if too many wait, KubeError 409 if the user code is in use.
   */
  async createForDevice(
    spec: Pick<SessionSpec, 'clientID' | 'scope'>,
    {
      userCode,
      sourceIP,
      life,
      refreshable,
    }: { userCode: string; sourceIP: string; life: number; refreshable: boolean },
  ): Promise<string> {
    const host = hostOf(sourceIP);
    const waiting = this.#of('').filter((session) => this.#isPending(session));
    const fromThere = waiting.filter(({ spec: { code } }) => hostOf(code?.sourceIP ?? '') === host);
    if (
      waiting.length + this.#devices.count('all') >= mostDevices ||
      fromThere.length + this.#devices.count(host) >= mostDevicesOfAddress
    )
      throw tooManyRequests('too many devices wait to be let in; try again later', Math.ceil(life / 10_000));
    const begun = { ...spec, userName: '', userUID: '', code: { sourceIP } };
    const places = ['all', host];
    this.#devices.add(places, 1);
    try {
      return await this.#beginPending(this.#tokens.nameOf(userCode), begun, life, refreshable);
    } finally {
      this.#devices.remove(places, 1);
    }
  }

  /** The session for which a device waits, by a read of the cluster. */
  async ofDevice(userCode: string): Promise<Session | undefined> {
    const session = await this.#live(this.#tokens.nameOf(userCode), true);
    return session !== undefined && this.#isPending(session) && session.spec.userName === '' ? session : undefined;
  }

  /** Lets the device in as this user. False if that is too late. */
  async letIn(
    session: Session,
    user: Holder & { readonly authenticatedAt: string; readonly login: string },
  ): Promise<boolean> {
    const { authenticatedAt, login, ...who } = user;
    const { code } = session.spec;
    if (code === undefined || !this.#isPending(session)) return false;
    const expiresAt = rfc3339(Math.min(Date.parse(session.spec.expiresAt), this.#oldest(authenticatedAt)));
    const spec = { ...session.spec, ...who, code: { ...code, authenticatedAt, login }, expiresAt };
    return (await this.#replace({ ...session, spec }, session.status)) !== undefined;
  }

  /**
   * A code begins its session once, on whichever replica. If one that went by a browser comes again, what it began ends (RFC 6749 section
   * 4.1.2). `accept` judges the session before.
   */
  async redeem(
    code: string,
    accept: (session: Session) => boolean,
    refreshable: boolean,
  ): Promise<Redeemed | Unredeemed> {
    const sid = this.#tokens.sessionOf(code);
    if (sid === undefined) return 'unknown';
    // A device asks again and again: what the watch brought is new enough for that.
    const known = this.known(sid, 'Pending');
    if (known?.spec.userName === '' && accept(known)) return 'waiting';
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const session = await this.#live(sid, true);
      if (session === undefined) return 'ended';
      if (!sameHash(hashToken(code), session.spec.code?.hash)) return 'unknown';
      const { phase } = session.status;
      if (phase === 'Active') {
        if (session.spec.code?.redirectURI === undefined || (await this.#end(session)) !== undefined) return 'reused';
        continue;
      }
      if (!accept(session)) return 'unknown';
      const isNobodys = session.spec.userName === '';
      if (!this.#isPending(session)) return phase === 'Revoked' && isNobodys ? 'refused' : 'ended';
      if (isNobodys) return 'waiting';
      if (!(await this.#hasLogin(session))) return 'ended';
      const begun = await this.#redeem(session, refreshable ? this.#tokens.first(sid) : undefined);
      if (begun !== undefined) return begun;
    }
    throw contended();
  }

  /** Whether the login that a code was given for still lives, by a read of the cluster: it may have ended at the same instant. */
  async #hasLogin({ spec: { code } }: Session): Promise<boolean> {
    if (code?.login === undefined) return true;
    const login = await this.#live(code.login, true);
    return login !== undefined && this.#isActive(login);
  }

  /** What the user of a login to our pages lets clients have. If it was changed meanwhile, nothing: they are asked again. */
  async setConsents(session: Session, consents: readonly string[]): Promise<void> {
    await this.#replace(session, { ...session.status, consents });
  }

  async #redeem(session: Session, refreshToken: string | undefined): Promise<Redeemed | undefined> {
    const begun = await this.#replace(session, {
      phase: 'Active',
      ...(refreshToken === undefined ? {} : { currentHash: hashToken(refreshToken) }),
      lastUsedAt: rfc3339(this.#clock.now()),
    });
    if (begun === undefined) return undefined;
    await this.#makeRoomFor(begun);
    return { session: begun, ...(refreshToken === undefined ? {} : { refreshToken }) };
  }

  async #begin(
    name: string,
    spec: Omit<SessionSpec, 'createdAt' | 'expiresAt'>,
    until: number,
    status: Pick<Session['status'], 'phase' | 'currentHash'>,
  ): Promise<Session> {
    const now = rfc3339(this.#clock.now());
    const session = await this.#post({
      apiVersion,
      kind: 'Session',
      metadata: { name },
      spec: { ...spec, createdAt: now, expiresAt: rfc3339(until) },
      status: { ...status, lastUsedAt: now },
    });
    this.#remember(session);
    await this.#makeRoomFor(session);
    return session;
  }

  /**
   * The session if it is active. An unknown sid costs one live read, shared by those who ask at once, so a login on another
   * replica counts at once. Throws 503 when the watch has been silent for too long to be believed.
   */
  async active(sid: string): Promise<Session | undefined> {
    if (this.#isSilent()) throw serviceUnavailable('the state of sessions cannot be read from the cluster now');
    if (!isSessionID(sid)) return undefined;
    const session = this.#known(sid) ?? (await this.#live(sid));
    return session !== undefined && this.#isActive(session) ? session : undefined;
  }

  /** The same without asking anybody: undefined for a session that is not active, or pending, not known here or not to be judged now. */
  known(sid: string, phase: 'Active' | 'Pending' = 'Active'): Session | undefined {
    const session = this.#isSilent() ? undefined : this.#known(sid);
    const is = session !== undefined && (phase === 'Active' ? this.#isActive(session) : this.#isPending(session));
    return is ? session : undefined;
  }

  /** RFC 6749 section 6 with rotation, grace and reuse detection (API.md 2). `accept` judges the session before it rotates. */
  async refresh(token: string, accept: (session: Session) => boolean): Promise<Refreshed> {
    const sid = this.#tokens.sessionOf(token);
    if (sid === undefined) return 'unknown';
    const known = this.#known(sid);
    // The watch may lag behind another replica: on what it brought only a rotation is tried, which the cluster confirms or refuses.
    if (known !== undefined && accept(known) && this.#judge(known, token) === 'rotate') {
      const rotated = await this.#rotate(known, token);
      if (rotated !== undefined) return rotated;
    }
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const session = await this.#live(sid, known !== undefined || attempt > 0);
      if (session === undefined || !accept(session)) return 'unknown';
      const verdict = this.#judge(session, token);
      if (verdict === 'repeat') return { session, refreshToken: this.#tokens.successor(token) };
      if (verdict === 'ended') return verdict;
      if (verdict === 'reused') {
        if ((await this.#end(session)) !== undefined) return 'reused';
      } else {
        const refreshed = await (verdict === 'rotate' ? this.#rotate(session, token) : this.#answer(session, token));
        if (refreshed !== undefined) return refreshed;
      }
    }
    throw contended();
  }

  /**
   * The session that a refresh token of ours belongs to, and whether the token would be taken now, by a read of the cluster: the watch
   * may lag behind another replica. Nothing changes by asking.
   */
  async presented(token: string): Promise<{ readonly session: Session; readonly isCurrent: boolean } | undefined> {
    const sid = this.#tokens.sessionOf(token);
    const session = sid === undefined ? undefined : await this.#live(sid, true);
    return session && { session, isCurrent: !['reused', 'ended'].includes(this.#judge(session, token)) };
  }

  /** Ends a session; returns after the write. An unknown or ended one is no error. */
  async revoke(sid: string): Promise<void> {
    for (;;) {
      const session = await this.#live(sid, true);
      if (session === undefined || session.status.phase === 'Revoked' || (await this.#end(session)) !== undefined)
        return;
    }
  }

  /**
   * Ends whatever else the user had when this session, as `create` answered it, was written; returns after that. The cluster puts all
   * writes in one order, so of logins at one instant on many replicas each ends those before it, and the last one alone stays: none sees
   * a later one, nor what that one has begun since.
   */
  async endOthers({ metadata: { name, resourceVersion }, spec }: Session): Promise<void> {
    const all = await this.#readAll(spec, { resourceVersion, resourceVersionMatch: 'Exact' });
    const others = all.filter((other) => other.metadata.name !== name);
    await Promise.all(others.map((other) => this.revoke(other.metadata.name)));
  }

  /** Ends whatever the user has in the cluster, also what was begun on another replica a moment ago; returns how many after the writes. */
  async endAll(user: Pick<SessionSpec, 'userName' | 'userUID'>): Promise<number> {
    const all = await this.#readAll(user);
    await Promise.all(all.map(({ metadata }) => this.revoke(metadata.name)));
    return all.length;
  }

  /**
   * Ends for good what this replica knows of a user or a client, one session after the other. Every replica does so, and what none can
   * end now the sweep does later. Never rejects.
   */
  async dismiss(who: Dismissed): Promise<void> {
    const all = 'userUID' in who ? this.#of(who.userUID) : this.#ofClient(who.clientID);
    const before = this.#dismissing;
    const end = async (): Promise<void> => {
      await before;
      for (const { metadata } of all) {
        // Another replica may have been here meanwhile.
        const session = this.#known(metadata.name);
        if (this.#isStopped || session === undefined || this.#isOver(session)) continue;
        try {
          await this.revoke(metadata.name);
        } catch (error) {
          this.#log.warn('a session of who was disabled or removed could not be ended', { error });
        }
      }
    };
    await (this.#dismissing = end());
  }

  #ofClient(clientID: string): Session[] {
    const all = [...this.#ofUser.keys()].flatMap((userUID) => this.#of(userUID));
    return all.filter(({ spec }) => spec.clientID === clientID);
  }

  /** What is active of a user, and what waits: a code would begin a session. By a read of the cluster. */
  async #readAll(
    { userName, userUID }: Pick<SessionSpec, 'userName' | 'userUID'>,
    at: Readonly<Record<string, string | undefined>> = {},
  ): Promise<Session[]> {
    const { items } = await this.#ask<{ readonly items: readonly Session[] }>(this.#path, {
      query: { fieldSelector: `spec.userName=${userName}`, ...at },
    });
    return items.filter((one) => one.spec.userUID === userUID && !this.#isOver(one));
  }

  /** The active sessions of a user as this replica knows them. */
  ofUser(userUID: string): Session[] {
    return this.#of(userUID).filter((session) => this.#isActive(session));
  }

  #of(userUID: string): Session[] {
    return [...(this.#ofUser.get(userUID) ?? [])]
      .map((sid) => this.#known(sid))
      .filter((session) => session !== undefined)
      .filter((session) => session.spec.userUID === userUID);
  }

  /**
   * RFC 9700 section 4.14.2: what a refresh token that was presented means for its session. 'unanswered': it was rotated, and nobody was
   * ever given its successor.
   */
  #judge(session: Session, token: string): 'rotate' | 'repeat' | 'unanswered' | 'reused' | 'ended' {
    if (!this.#isActive(session)) return 'ended';
    const { currentHash, previousHash, rotatedAt } = session.status;
    const presented = hashToken(token);
    if (sameHash(presented, currentHash)) return 'rotate';
    if (!sameHash(presented, previousHash)) return 'reused';
    const now = this.#clock.now();
    if (now - Date.parse(rotatedAt ?? '') <= this.#lives().refreshGrace) return 'repeat';
    return now - (this.#unanswered.get(presented) ?? -Infinity) <= unansweredLife ? 'unanswered' : 'reused';
  }

  async #post(session: Session): Promise<Session> {
    try {
      return await this.#ask(this.#path, { method: 'POST', body: session });
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      if (error.code === 404)
        this.#log.error('the cluster has no sessions.iam.platform.io: apply its CustomResourceDefinition again', {
          error,
        });
      throw unavailable(error);
    }
  }

  /** The sessions that were used longest ago give way. A login does not fail for it: the next one tries again. */
  async #makeRoomFor({ metadata: { name }, spec, status: { phase } }: Session): Promise<void> {
    if (spec.userUID === '') return;
    const most = phase === 'Pending' ? mostPending : spec.subjectKind === undefined ? mostOfUser : mostOfProgram;
    const tooMany = this.#of(spec.userUID)
      .filter((session) => (phase === 'Pending' ? this.#isPending(session) : this.#isActive(session)))
      .filter((session) => session.metadata.name !== name)
      .toSorted((a, b) => timesOf(a).lastUse - timesOf(b).lastUse)
      .slice(0, 1 - most)
      .slice(0, endedAtLogin);
    try {
      await Promise.all(tooMany.map((session) => this.#delete(session)));
    } catch (error) {
      this.#log.warn('a session too many of a user could not be deleted', { error });
    }
  }

  async #rotate(session: Session, token: string): Promise<Refreshed | undefined> {
    const now = rfc3339(this.#clock.now());
    const refreshToken = this.#tokens.successor(token);
    const previousHash = hashToken(token);
    try {
      const updated = await this.#replace(session, {
        phase: 'Active',
        currentHash: hashToken(refreshToken),
        previousHash,
        rotatedAt: now,
        lastUsedAt: now,
      });
      return updated && { session: updated, refreshToken };
    } catch (error) {
      this.#unanswered.set(previousHash, this.#clock.now());
      throw error;
    }
  }

  /** Gives the successor that could not be given when it was made; the grace begins with that, on every replica. */
  async #answer(session: Session, token: string): Promise<Refreshed | undefined> {
    const updated = await this.#replace(session, { ...session.status, rotatedAt: rfc3339(this.#clock.now()) });
    if (updated === undefined) return undefined;
    this.#unanswered.delete(hashToken(token));
    return { session: updated, refreshToken: this.#tokens.successor(token) };
  }

  #end(session: Session): Promise<Session | undefined> {
    return this.#replace(session, { phase: 'Revoked' });
  }

  /** Undefined when somebody else changed the session meanwhile. */
  async #replace(session: Session, status: Session['status']): Promise<Session | undefined> {
    try {
      const updated = await this.#ask(`${this.#path}/${session.metadata.name}`, {
        method: 'PUT',
        body: { ...session, status },
      });
      this.#remember(updated);
      return updated;
    } catch (error) {
      if (isKubeError(error, 409) || isKubeError(error, 404)) return undefined;
      throw error;
    }
  }

  /** When all ends that began with a login; milliseconds since the epoch. What is let in by a session does not outlive it. */
  #oldest(authenticatedAt: string): number {
    return Date.parse(authenticatedAt) + this.#lives().sessionMaxAge;
  }

  #isSilent(): boolean {
    return this.#clock.now() - this.#informer.lastSignOfLife() > longestSilence;
  }

  #isActive(session: Session): boolean {
    const now = this.#clock.now();
    const { expiresAt, lastUse } = timesOf(session);
    const { phase, currentHash } = session.status;
    // What nobody can refresh is not idle.
    const idleFrom = currentHash === undefined ? Infinity : lastUse + this.#lives().refreshTokenIdle;
    return phase === 'Active' && expiresAt > now && idleFrom > now;
  }

  #isOver(session: Session): boolean {
    return !this.#isActive(session) && !this.#isPending(session);
  }

  #isPending({ spec, status }: Session): boolean {
    return status.phase === 'Pending' && Date.parse(spec.code?.redeemBefore ?? '') > this.#clock.now();
  }

  #known(sid: string): Session | undefined {
    const written = this.#written.get(sid);
    if (written === 'deleted') return undefined;
    const watched = this.#informer.get(this.#namespace, sid);
    if (written === undefined || watched === undefined) return written ?? watched;
    if (versionOf(written) > versionOf(watched)) return written;
    // The watch has caught up.
    this.#written.delete(sid);
    return watched;
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

  async #live(sid: string, afresh = false): Promise<Session | undefined> {
    const under = afresh ? undefined : this.#reads.get(sid);
    if (under !== undefined) return await under;
    const read = this.#read(sid);
    this.#reads.set(sid, read);
    return await read;
  }

  async #read(sid: string): Promise<Session | undefined> {
    let found = false;
    try {
      const session = await this.#ask(`${this.#path}/${sid}`);
      found = true;
      return session;
    } catch (error) {
      if (isKubeError(error, 404)) return undefined;
      throw error;
    } finally {
      // A name that was not found is not asked for again for a moment: garbage must not reach kube-apiserver at the callers' pace.
      if (found) this.#reads.delete(sid);
      else setTimeout(() => this.#reads.delete(sid), unknownLife).unref();
    }
  }

  /** Throws KubeError 404 and 409, which mean something here; 503 for whatever else is wrong between us and the cluster. */
  async #ask<T = Session>(path: string, options?: KubeRequest): Promise<T> {
    const giveUp = new AbortController();
    const cancel = this.#clock.after(longestAnswer, () => giveUp.abort(new Error('no answer in time')));
    try {
      return await this.#client.json<T>(path, { ...options, signal: giveUp.signal });
    } catch (error) {
      throw error instanceof KubeError && error.code !== 404 && error.code !== 409 ? unavailable(error) : error;
    } finally {
      cancel();
    }
  }

  /** Unless somebody has changed it meanwhile. */
  async #delete({ metadata }: Session): Promise<void> {
    try {
      await this.#ask(`${this.#path}/${metadata.name}`, {
        method: 'DELETE',
        body: { preconditions: { resourceVersion: metadata.resourceVersion } },
      });
      this.#written.set(metadata.name, 'deleted');
    } catch (error) {
      if (!isKubeError(error, 404) && !isKubeError(error, 409)) throw error;
    }
  }

  #sweepLater(): void {
    this.#stopSweeping = this.#clock.after(sweepInterval * (0.5 + this.#clock.random()), () => {
      void this.#sweep().finally(() => {
        if (!this.#isStopped) this.#sweepLater();
      });
    });
  }

  /** One that is younger may be of somebody who is new, of whom this replica does not know yet. */
  #isForNobody({ spec }: Session): boolean {
    return Date.parse(spec.createdAt) < this.#clock.now() - sweepInterval && this.#isDismissed(spec);
  }

  /** Deletes all sessions that are over; replicas that sweep at the same time do each other no harm. */
  async #sweep(): Promise<void> {
    if (!this.#maySweep()) return;
    let failures = 0;
    for (const { metadata } of this.#informer.list()) {
      if (this.#isStopped || failures === mostSweepFailures) return;
      try {
        // Another replica may have been here meanwhile.
        const session = this.#informer.get(this.#namespace, metadata.name);
        if (session !== undefined && (this.#isOver(session) || this.#isForNobody(session))) await this.#delete(session);
      } catch (error) {
        failures += 1;
        this.#log.warn('an ended session could not be deleted', { error });
      }
    }
  }
}

const contended = (): StatusError => serviceUnavailable('the session is being changed by others all the time');

const unavailable = (error: KubeError): StatusError =>
  serviceUnavailable('the state of sessions cannot be read or written in the cluster now', 1, error);

interface Times {
  readonly expiresAt: number;
  readonly lastUse: number;
}

/** Every request asks for them, and a session is not altered. */
const times = new WeakMap<Session, Times>();

/** Milliseconds since the epoch. */
function timesOf(session: Session): Times {
  let known = times.get(session);
  if (known === undefined) {
    const { spec, status } = session;
    known = { expiresAt: Date.parse(spec.expiresAt), lastUse: Date.parse(status.lastUsedAt ?? spec.createdAt) };
    times.set(session, known);
  }
  return known;
}

const versionOf = ({ metadata }: Session): bigint => BigInt(metadata.resourceVersion ?? 0);

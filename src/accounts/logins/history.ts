/**
 * Login history: successful and failed logins with time and address, in one object per user in the namespace of the
 * release. The object is named by the uid, so a later user of the same name does not inherit the history. Replicas do
 * not cache the history: each request for the history reads the object from the cluster. A login never waits for a
 * write of the history.
 */
import { BoundedCache, copied } from '../../runtime/bounded-cache.ts';
import { iamAPIVersion, loginHistoriesPath } from '../../config/names.ts';
import type { LoginHistorySettings } from '../../config/schema.ts';
import { serviceUnavailable } from '../../runtime/errors.ts';
import type { KubeClient } from '../../cluster/client/client.ts';
import { repeat, rfc3339, type Clock } from '../../runtime/time.ts';
import type { KubeObject } from '../../cluster/client/kube-object.ts';
import { KubeError } from '../../cluster/client/kube-error.ts';
import { Objects } from '../../cluster/objects.ts';
import { metadataAs, metadataHeaders } from '../../cluster/client/kube-object.ts';
import type { Logger } from '../../runtime/logger.ts';
import type { Account } from '../directory/account.ts';
import type { Directory } from '../directory/directory.ts';
import { WriteBehind } from '../../cluster/write-behind.ts';

/** Outcome of a login. The values are part of the API. */
export type LoginOutcome = 'LoggedIn' | 'WrongPassword' | 'NoPassword' | 'Disabled' | 'Limited';

export interface LoginRecord {
  /** Time of the login in RFC 3339 format. */
  readonly time: string;
  readonly success: boolean;
  readonly reason: LoginOutcome;
  /** The name of the OAuth client. */
  readonly client: string;
  readonly sourceIP: string;
  readonly userAgent: string;
}

export type RecordedLogin = Pick<LoginRecord, 'reason' | 'client' | 'sourceIP' | 'userAgent'>;

interface LoginHistory extends KubeObject {
  readonly spec: { readonly userName: string };
  /** Records, newest first. */
  readonly status: { readonly records: readonly LoginRecord[] };
}

type LoginUser = Pick<Account, 'username' | 'uid'>;

interface Unwritten {
  readonly username: string;
  readonly records: readonly LoginRecord[];
}

/** Annotation with the time of the newest record, so that the time can be read without the records. */
const newestKey = 'iam.platform.io/newest-record';
export const longestUserAgent = 256;
/** Maximum bytes of the records. etcd rejects objects over 1.5 MiB. */
const maxBytes = 1_000_000;
const attempts = 5;
/** Maximum number of records that small patches add to an object before the whole object is rewritten and trimmed. */
const maxAppended = 16;
/**
 * Interval in milliseconds. If the limits refuse logins repeatedly, one refusal per interval is recorded, so that a
 * flood of refusals does not displace other records.
 */
const limitedInterval = 60_000;
/** Milliseconds without a login after which the next write rewrites the user's object as a whole. */
const appendedLife = 3_600_000;
const sweepInterval = 600_000;
const pageSize = 500;

export class LoginHistories {
  readonly #objects: Objects<LoginHistory>;
  readonly #settings: () => LoginHistorySettings;
  readonly #directory: Pick<Directory, 'configured' | 'configuredAccounts'>;
  readonly #loggedIn: (user: LoginUser, time: string) => void;
  readonly #maySweep: () => boolean;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #writes: WriteBehind<Unwritten>;
  readonly #limited: BoundedCache<number>;
  /** Number of records that this replica has added by patches since it rewrote the object, by uid. */
  readonly #appended: BoundedCache<number>;
  readonly #stopped = new AbortController();

  constructor(options: {
    client: Pick<KubeClient, 'json'>;
    namespace: string;
    settings: () => LoginHistorySettings;
    directory: Pick<Directory, 'configured' | 'configuredAccounts'>;
    /** Called after each successful login. `time` is in RFC 3339 format. */
    loggedIn: (user: LoginUser, time: string) => void;
    /** Returns whether this replica deletes expired objects. */
    maySweep: () => boolean;
    clock: Clock;
    log: Logger;
  }) {
    this.#objects = new Objects(options.client, loginHistoriesPath(options.namespace));
    this.#settings = options.settings;
    this.#directory = options.directory;
    this.#loggedIn = options.loggedIn;
    this.#maySweep = options.maySweep;
    this.#clock = options.clock;
    this.#log = options.log;
    const limits = { maxEntries: 10_000, maxBytes: 4 * 1024 * 1024, clock: () => this.#clock.now() };
    this.#limited = new BoundedCache({ ...limits, name: 'limited_logins', ttl: limitedInterval });
    this.#appended = new BoundedCache({ ...limits, name: 'login_histories', ttl: appendedLife });
    this.#writes = new WriteBehind<Unwritten>({
      what: 'login history',
      write: (uid, unwritten) => this.#write(uid, unwritten),
      merge: (waiting, { username, records }) => ({
        username,
        records: [...waiting.records, ...records].slice(-this.#settings().maxEntries),
      }),
      clock: this.#clock,
      log: this.#log,
    });
  }

  start(): void {
    void repeat(this.#clock, sweepInterval, this.#stopped.signal, () =>
      this.#sweep().catch((error: unknown) => void this.#log.warn('login history cleanup failed', { error })),
    );
  }

  /** Writes pending records, then stops. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#writes.stop();
  }

  /** Queues a record. A login neither waits for the write nor fails with it. */
  add(user: LoginUser, { reason, client, sourceIP, userAgent }: RecordedLogin): void {
    const { username, uid } = user;
    const now = this.#clock.now();
    if (reason === 'Limited') {
      const key = JSON.stringify([uid, client, sourceIP]);
      if (now - (this.#limited.get(key) ?? -Infinity) < limitedInterval) return;
      this.#limited.set(key, now);
    }
    const record: LoginRecord = {
      time: rfc3339(now),
      success: reason === 'LoggedIn',
      reason,
      client,
      sourceIP,
      userAgent: copied(userAgent.slice(0, longestUserAgent)),
    };
    this.#writes.put(uid, { username, records: [record] });
    if (record.success) this.#loggedIn(user, record.time);
  }

  /** Returns the records of a user, newest first. Throws 503 if the cluster cannot be read. */
  async of({ uid }: LoginUser): Promise<readonly LoginRecord[]> {
    const unwritten = this.#writes.unwritten(uid)?.records ?? [];
    try {
      return this.#kept([...unwritten, ...((await this.#objects.get(uid))?.status.records ?? [])]);
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      throw serviceUnavailable('the login history cannot be read from the cluster; try again', 1, error);
    }
  }

  async #write(uid: string, { username, records }: Unwritten): Promise<void> {
    const appended = (this.#appended.get(uid) ?? Infinity) + records.length;
    // A failed write may still have taken effect, so the next write rewrites the whole object.
    this.#appended.delete(uid);
    const isAppended = appended <= maxAppended && (await this.#append(uid, records));
    if (!isAppended) await this.#rewrite(uid, username, records);
    this.#appended.set(uid, isAppended ? appended : 0);
  }

  /** Adds records with one small patch. Returns false if the object is missing or does not fit the patch. */
  async #append(uid: string, records: readonly LoginRecord[]): Promise<boolean> {
    const newest = {
      op: 'add',
      path: `/metadata/annotations/${newestKey.replace('/', '~1')}`,
      value: records.at(-1)?.time,
    };
    try {
      await this.#objects.request(`/${uid}`, {
        method: 'PATCH',
        contentType: 'application/json-patch+json',
        body: [...records.map((value) => ({ op: 'add', path: '/status/records/0', value })), newest],
        headers: metadataHeaders,
      });
      return true;
    } catch (error) {
      if (error instanceof KubeError && [400, 404, 409, 422].includes(error.code)) return false;
      throw error;
    }
  }

  async #rewrite(uid: string, username: string, records: readonly LoginRecord[]): Promise<void> {
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      const current = await this.#objects.get(uid);
      const all = this.#kept([...(current?.status.records ?? []), ...records]);
      const base = current ?? this.#newHistory(uid, username);
      const annotations = { ...base.metadata.annotations, [newestKey]: all[0]?.time ?? '' };
      const object = { ...base, metadata: { ...base.metadata, annotations }, status: { records: all } };
      if (await (current === undefined ? this.#objects.create(object) : this.#objects.replace(object))) return;
    }
    throw new Error(`${attempts} write conflicts`);
  }

  /**
   * Returns an empty history. A User object owns its history, so the garbage collector deletes both; a configured user
   * has no object that could own it.
   */
  #newHistory(uid: string, username: string): Omit<LoginHistory, 'status'> {
    const isConfigured = this.#directory.configured(username)?.uid === uid;
    const ownerReferences = isConfigured ? [] : [{ apiVersion: iamAPIVersion, kind: 'User', name: username, uid }];
    return {
      apiVersion: iamAPIVersion,
      kind: 'LoginHistory',
      metadata: { name: uid, ownerReferences },
      spec: { userName: username },
    };
  }

  /**
   * Returns the records to keep, newest first. Removes duplicates, because a write is repeated if its response was
   * lost.
   */
  #kept(records: readonly LoginRecord[]): LoginRecord[] {
    const { keep, maxEntries } = this.#settings();
    const oldest = rfc3339(this.#clock.now() - keep);
    const kept = [...new Map(records.map((record) => [identityOf(record), record])).values()]
      .filter(({ time }) => time >= oldest)
      .toSorted((a, b) => (a.time < b.time ? 1 : a.time > b.time ? -1 : 0))
      .slice(0, maxEntries);
    let size = 0;
    const end = kept.findIndex((record) => (size += Buffer.byteLength(JSON.stringify(record))) > maxBytes);
    return end === -1 ? kept : kept.slice(0, end);
  }

  /** Deletes histories of configured users that no longer exist, and histories whose records have all expired. */
  async #sweep(): Promise<void> {
    if (!this.#maySweep()) return;
    const uids = new Set([...this.#directory.configuredAccounts()].map(({ uid }) => uid));
    const oldest = rfc3339(this.#clock.now() - this.#settings().keep);
    let next = '';
    do {
      const { items, metadata } = await this.#objects.request<List>('', {
        query: { limit: pageSize, ...(next === '' ? {} : { continue: next }) },
        headers: { accept: metadataAs('PartialObjectMetadataList') },
      });
      for (const { metadata: object } of items) {
        if (this.#stopped.signal.aborted) return;
        const isExpired = (object.annotations?.[newestKey] ?? '') < oldest;
        const isOrphaned = (object.ownerReferences ?? []).length === 0 && !uids.has(object.name);
        if (isExpired || isOrphaned) await this.#objects.delete(object);
      }
      next = metadata.continue ?? '';
    } while (next !== '');
  }
}

interface List {
  readonly metadata: { readonly continue?: string };
  readonly items: readonly KubeObject[];
}

const identityOf = ({ time, reason, client, sourceIP, userAgent }: LoginRecord): string =>
  JSON.stringify([time, reason, client, sourceIP, userAgent]);

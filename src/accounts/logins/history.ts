/**
 * Who logged in when and from where, or tried to: one object a user in the namespace of the release, named by the uid, so that a
 * user of the same name made later does not inherit it. No replica keeps a copy: it is read for whoever asks. A login waits for
 * none of it.
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

/** Why a login was refused, or that it was not. These words do not change. */
export type LoginOutcome = 'LoggedIn' | 'WrongPassword' | 'NoPassword' | 'Disabled' | 'Limited';

export interface LoginRecord {
  /** RFC 3339. */
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
  /** The newest first. */
  readonly status: { readonly records: readonly LoginRecord[] };
}

type Of = Pick<Account, 'username' | 'uid'>;

interface Unwritten {
  readonly username: string;
  readonly records: readonly LoginRecord[];
}

/** When the newest record was made: seen without reading them all. */
const newestKey = 'iam.platform.io/newest-record';
export const longestUserAgent = 256;
/** Bytes. etcd takes no object of more than 1.5 MiB. */
const largest = 1_000_000;
const attempts = 5;
/** So many records are put before the others one by one, until the object is read and written as a whole: then it is cut. */
const maxAppended = 16;
/** Whoever is refused by the limits again and again is noted once in that time: a flood must not wash the history away. */
const limitedInterval = 60_000;
/** Milliseconds without a login after which the object of the user is read and written as a whole. */
const appendedLife = 3_600_000;
const sweepInterval = 600_000;
const pageSize = 500;

export class LoginHistories {
  readonly #objects: Objects<LoginHistory>;
  readonly #settings: () => LoginHistorySettings;
  readonly #directory: Pick<Directory, 'configured' | 'configuredAccounts'>;
  readonly #loggedIn: (user: Of, time: string) => void;
  readonly #maySweep: () => boolean;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #writes: WriteBehind<Unwritten>;
  readonly #limited: BoundedCache<number>;
  /** How many records this replica has put before the others since it wrote the object as a whole, by uid. */
  readonly #appended: BoundedCache<number>;
  readonly #stopped = new AbortController();

  constructor(options: {
    client: Pick<KubeClient, 'json'>;
    namespace: string;
    settings: () => LoginHistorySettings;
    directory: Pick<Directory, 'configured' | 'configuredAccounts'>;
    /** Told of each login that succeeds; `time` is RFC 3339. */
    loggedIn: (user: Of, time: string) => void;
    /** Whether it is for this replica to delete what is over. */
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
      what: 'the login history of a user',
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
      this.#sweep().catch((error: unknown) => void this.#log.warn('login histories could not be swept', { error })),
    );
  }

  /** What is not written yet is written first. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#writes.stop();
  }

  /** At once: a login does not wait for it, and does not fail for it. */
  add(user: Of, { reason, client, sourceIP, userAgent }: RecordedLogin): void {
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

  /** The newest first. Throws 503. */
  async of({ uid }: Of): Promise<readonly LoginRecord[]> {
    const unwritten = this.#writes.unwritten(uid)?.records ?? [];
    try {
      return this.#kept([...unwritten, ...((await this.#objects.get(uid))?.status.records ?? [])]);
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      throw serviceUnavailable('the login history cannot be read in the cluster now', 1, error);
    }
  }

  async #write(uid: string, { username, records }: Unwritten): Promise<void> {
    const appended = (this.#appended.get(uid) ?? Infinity) + records.length;
    // What fails may have been done nevertheless: then all is read next.
    this.#appended.delete(uid);
    const isAppended = appended <= maxAppended && (await this.#append(uid, records));
    if (!isAppended) await this.#rewrite(uid, username, records);
    this.#appended.set(uid, isAppended ? appended : 0);
  }

  /** Puts them before the others, in one small request. False if the object is not as it was left. */
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
      const base = current ?? this.#newOf(uid, username);
      const annotations = { ...base.metadata.annotations, [newestKey]: all[0]?.time ?? '' };
      const object = { ...base, metadata: { ...base.metadata, annotations }, status: { records: all } };
      if (await (current === undefined ? this.#objects.create(object) : this.#objects.replace(object))) return;
    }
    throw new Error('others write it all the time');
  }

  /** The cluster's garbage collector deletes that of a User object; what is configured has no object to belong to. */
  #newOf(uid: string, username: string): Omit<LoginHistory, 'status'> {
    const isConfigured = this.#directory.configured(username)?.uid === uid;
    const ownerReferences = isConfigured ? [] : [{ apiVersion: iamAPIVersion, kind: 'User', name: username, uid }];
    return {
      apiVersion: iamAPIVersion,
      kind: 'LoginHistory',
      metadata: { name: uid, ownerReferences },
      spec: { userName: username },
    };
  }

  /** Those that are kept, the newest first, each once: a write whose answer was lost is made again. */
  #kept(records: readonly LoginRecord[]): LoginRecord[] {
    const { keep, maxEntries } = this.#settings();
    const oldest = rfc3339(this.#clock.now() - keep);
    const kept = [...new Map(records.map((record) => [identityOf(record), record])).values()]
      .filter(({ time }) => time >= oldest)
      .toSorted((a, b) => (a.time < b.time ? 1 : a.time > b.time ? -1 : 0))
      .slice(0, maxEntries);
    let size = 0;
    const end = kept.findIndex((record) => (size += Buffer.byteLength(JSON.stringify(record))) > largest);
    return end === -1 ? kept : kept.slice(0, end);
  }

  /** Deletes those of configured users who are gone, and those of which nothing is kept any more. */
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
      for (const { metadata: of } of items) {
        if (this.#stopped.signal.aborted) return;
        const isOver = (of.annotations?.[newestKey] ?? '') < oldest;
        const isGone = (of.ownerReferences ?? []).length === 0 && !uids.has(of.name);
        if (isOver || isGone) await this.#objects.delete(of);
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

/**
 * Sessions of devices (RFC 8628): a session starts once a user has approved its user code and the device presents its
 * device code.
 */
import { StatusError, tooManyRequests } from '../../runtime/errors.ts';
import { rfc3339, parseMilliseconds } from '../../runtime/time.ts';
import { isKubeError } from '../../cluster/client/kube-error.ts';
import { addressKeys, Shares, shareAt } from '../../runtime/shares.ts';
import type { RefreshTokens } from '../refresh-tokens.ts';
import type { Codes } from './codes.ts';
import type { Lifetimes } from './lifetimes.ts';
import type { SessionStore } from './session-store.ts';
import type { SessionOwner, Session, SessionSpec } from './session.ts';

/** Maximum devices that wait for approval. The number is limited, because devices are not authenticated. */
const maxDevices = 1_000;
const maxPerAddress = 20;

export interface NewDevice {
  readonly userCode: string;
  readonly sourceIP: string;
  /** Lifetime of the codes in milliseconds. */
  readonly life: number;
  readonly refreshable: boolean;
}

export class Devices {
  readonly #store: SessionStore;
  readonly #lifetimes: Lifetimes;
  readonly #codes: Codes;
  readonly #tokens: RefreshTokens;
  /** Devices whose sessions are being written, per address and in total. */
  readonly #beingWritten = new Shares('device_codes_in_progress');

  constructor(options: { store: SessionStore; lifetimes: Lifetimes; codes: Codes; tokens: RefreshTokens }) {
    this.#store = options.store;
    this.#lifetimes = options.lifetimes;
    this.#codes = options.codes;
    this.#tokens = options.tokens;
  }

  /**
   * Returns the device code; undefined if the user code is in use. Every replica derives the session name from the user
   * code. Throws 429 if too many devices wait.
   */
  async create(
    spec: Pick<SessionSpec, 'clientID' | 'scope'>,
    { userCode, sourceIP, life, refreshable }: NewDevice,
  ): Promise<string | undefined> {
    const keys = addressKeys(sourceIP);
    const waiting = this.#store.ofUser('').filter((session) => this.#lifetimes.isPending(session));
    const refuse = (limit: string): never => {
      throw tooManyRequests(`${limit} are waiting for approval; try again later`, Math.ceil(life / 10_000));
    };
    const sources = waiting.map(({ spec: { code } }) => addressKeys(code?.sourceIP ?? ''));
    for (const [index, key] of keys.entries()) {
      const share = shareAt(index, maxPerAddress);
      const waitingHere = sources.filter((source) => source[index] === key).length;
      if (waitingHere + this.#beingWritten.count(key) >= share)
        refuse(`${share} devices from this ${key.split(' ')[0]}`);
    }
    if (waiting.length + this.#beingWritten.count('all') >= maxDevices) refuse(`${maxDevices} devices`);
    const pending = { ...spec, userName: '', userUID: '', code: { sourceIP } };
    const holder = ['all', ...keys] as const;
    this.#beingWritten.add(holder, 1);
    try {
      return await this.#codes.create(pending, life, refreshable, this.#tokens.sessionFor(userCode));
    } catch (error) {
      if (error instanceof StatusError && isKubeError(error.cause, 409)) return undefined;
      throw error;
    } finally {
      this.#beingWritten.add(holder, -1);
    }
  }

  /** Returns the session of a user code if the device still waits for approval. Reads from the cluster. */
  async findPending(userCode: string): Promise<Session | undefined> {
    const session = await this.#store.readLatest(this.#tokens.sessionFor(userCode));
    const isWaiting = session !== undefined && this.#lifetimes.isPending(session) && session.spec.userName === '';
    return isWaiting ? session : undefined;
  }

  /** Allows the device to log in as the user. Returns false if the code has expired, or was revoked or changed. */
  async approve(
    session: Session,
    user: SessionOwner & { readonly authenticatedAt: string; readonly login: string },
  ): Promise<boolean> {
    const { authenticatedAt, login, ...owner } = user;
    const { code } = session.spec;
    if (code === undefined || !this.#lifetimes.isPending(session)) return false;
    const expiresAt = rfc3339(
      Math.min(parseMilliseconds(session.spec.expiresAt), this.#lifetimes.endOf(authenticatedAt)),
    );
    const spec = { ...session.spec, ...owner, code: { ...code, authenticatedAt, login }, expiresAt };
    return (await this.#store.replace({ ...session, spec }, session.status)) !== undefined;
  }
}

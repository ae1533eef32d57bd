/** RFC 8628: a session that begins when somebody types in a user code and lets the device in, and the device asks with its own code. */
import { StatusError, tooManyRequests } from '../../runtime/errors.ts';
import { rfc3339, parseMilliseconds } from '../../runtime/time.ts';
import { isKubeError } from '../../cluster/client/kube-error.ts';
import { addressKeys, Shares, shareAt } from '../../runtime/shares.ts';
import type { RefreshTokens } from '../refresh-tokens.ts';
import type { Codes } from './codes.ts';
import type { Lifetimes } from './lifetimes.ts';
import type { SessionStore } from './session-store.ts';
import type { SessionOwner, Session, SessionSpec } from './session.ts';

/** Devices that wait for approval, in total and per address: they are not authenticated. */
const maxDevices = 1_000;
const maxPerAddress = 20;

export interface NewDevice {
  readonly userCode: string;
  readonly sourceIP: string;
  /** Milliseconds. */
  readonly life: number;
  readonly refreshable: boolean;
}

export class Devices {
  readonly #store: SessionStore;
  readonly #lives: Lifetimes;
  readonly #codes: Codes;
  readonly #tokens: RefreshTokens;
  /** Devices that are being written, per address and in total. */
  readonly #beingWritten = new Shares('device_codes_in_progress');

  constructor(options: { store: SessionStore; lives: Lifetimes; codes: Codes; tokens: RefreshTokens }) {
    this.#store = options.store;
    this.#lives = options.lives;
    this.#codes = options.codes;
    this.#tokens = options.tokens;
  }

  /**
   * The code of the device; undefined if its user code is in use, which names its session on every replica. Throws 429 if too many wait.
   */
  async create(
    spec: Pick<SessionSpec, 'clientID' | 'scope'>,
    { userCode, sourceIP, life, refreshable }: NewDevice,
  ): Promise<string | undefined> {
    const keys = addressKeys(sourceIP);
    const waiting = this.#store.ofUser('').filter((session) => this.#lives.isPending(session));
    const refuse = (limit: string): never => {
      throw tooManyRequests(`${limit} wait for approval; please try again later`, Math.ceil(life / 10_000));
    };
    const sources = waiting.map(({ spec: { code } }) => addressKeys(code?.sourceIP ?? ''));
    for (const [index, key] of keys.entries()) {
      const share = shareAt(index, maxPerAddress);
      const fromThere = sources.filter((source) => source[index] === key).length;
      if (fromThere + this.#beingWritten.count(key) >= share) refuse(`${share} devices of this ${key.split(' ')[0]}`);
    }
    if (waiting.length + this.#beingWritten.count('all') >= maxDevices) refuse(`${maxDevices} devices`);
    const begun = { ...spec, userName: '', userUID: '', code: { sourceIP } };
    const holder = ['all', ...keys] as const;
    this.#beingWritten.add(holder, 1);
    try {
      return await this.#codes.create(begun, life, refreshable, this.#tokens.nameOf(userCode));
    } catch (error) {
      if (error instanceof StatusError && isKubeError(error.cause, 409)) return undefined;
      throw error;
    } finally {
      this.#beingWritten.add(holder, -1);
    }
  }

  /** The session for which a device waits, by a read of the cluster. */
  async waitingFor(userCode: string): Promise<Session | undefined> {
    const session = await this.#store.readAfresh(this.#tokens.nameOf(userCode));
    const waits = session !== undefined && this.#lives.isPending(session) && session.spec.userName === '';
    return waits ? session : undefined;
  }

  /** Lets the device in as this user. False if that is too late. */
  async letIn(
    session: Session,
    user: SessionOwner & { readonly authenticatedAt: string; readonly login: string },
  ): Promise<boolean> {
    const { authenticatedAt, login, ...who } = user;
    const { code } = session.spec;
    if (code === undefined || !this.#lives.isPending(session)) return false;
    const expiresAt = rfc3339(Math.min(parseMilliseconds(session.spec.expiresAt), this.#lives.endOf(authenticatedAt)));
    const spec = { ...session.spec, ...who, code: { ...code, authenticatedAt, login }, expiresAt };
    return (await this.#store.replace({ ...session, spec }, session.status)) !== undefined;
  }
}

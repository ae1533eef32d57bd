/** RFC 8628: a session that begins when somebody types in a user code and lets the device in, and the device asks with its own code. */
import { StatusError, tooManyRequests } from '../../errors.ts';
import { rfc3339 } from '../../kube/clock.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { parseMilliseconds } from '../../kube/time.ts';
import { hostOf } from '../host-of.ts';
import type { RefreshTokens } from '../refresh-tokens.ts';
import { UnderWay } from '../under-way.ts';
import type { Codes } from './codes.ts';
import type { Lives } from './lives.ts';
import type { SessionStore } from './session-store.ts';
import type { Holder, Session, SessionSpec } from './session.ts';

/** Devices that wait to be let in: whoever has them wait proves nothing. */
const mostDevices = 1_000;
const mostOfAddress = 20;

export interface NewDevice {
  readonly userCode: string;
  readonly sourceIP: string;
  /** Milliseconds. */
  readonly life: number;
  readonly refreshable: boolean;
}

export class Devices {
  readonly #store: SessionStore;
  readonly #lives: Lives;
  readonly #codes: Codes;
  readonly #tokens: RefreshTokens;
  /** Those that are being written, by the host that asks and in all. */
  readonly #underWay = new UnderWay('device_codes');

  constructor(options: { store: SessionStore; lives: Lives; codes: Codes; tokens: RefreshTokens }) {
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
    const host = hostOf(sourceIP);
    const waiting = this.#store.ofUser('').filter((session) => this.#lives.isPending(session));
    const fromThere = waiting.filter(({ spec: { code } }) => hostOf(code?.sourceIP ?? '') === host);
    if (
      waiting.length + this.#underWay.count('all') >= mostDevices ||
      fromThere.length + this.#underWay.count(host) >= mostOfAddress
    )
      throw tooManyRequests('too many devices wait to be let in; try again later', Math.ceil(life / 10_000));
    const begun = { ...spec, userName: '', userUID: '', code: { sourceIP } };
    const places = ['all', host];
    this.#underWay.add(places, 1);
    try {
      return await this.#codes.create(begun, life, refreshable, this.#tokens.nameOf(userCode));
    } catch (error) {
      if (error instanceof StatusError && isKubeError(error.cause, 409)) return undefined;
      throw error;
    } finally {
      this.#underWay.remove(places, 1);
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
    user: Holder & { readonly authenticatedAt: string; readonly login: string },
  ): Promise<boolean> {
    const { authenticatedAt, login, ...who } = user;
    const { code } = session.spec;
    if (code === undefined || !this.#lives.isPending(session)) return false;
    const expiresAt = rfc3339(Math.min(parseMilliseconds(session.spec.expiresAt), this.#lives.endOf(authenticatedAt)));
    const spec = { ...session.spec, ...who, code: { ...code, authenticatedAt, login }, expiresAt };
    return (await this.#store.replace({ ...session, spec }, session.status)) !== undefined;
  }
}

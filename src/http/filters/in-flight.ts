import { HolderSlots, tooManyInProgress } from '../../runtime/slots.ts';
import { addressKeys, type ShareHolder } from '../../runtime/shares.ts';
import type { PlatformConfiguration } from '../../config/schema.ts';
import type { Exchange, RequestFilter } from '../exchange.ts';
import { requestsInFlight } from '../../runtime/metrics/definitions.ts';
import { probes } from './access-log.ts';

/**
 * Maximum watches of one user. A watch costs little more than its buffer, and each kubectl, console or controller holds
 * only a few.
 */
const maxWatchesPerUser = 1_000;

type Limits = Pick<PlatformConfiguration['requests'], 'maxInFlight' | 'maxInFlightPerUser'>;

type Kind = 'login' | 'read' | 'change' | 'anonymous';
type PoolKind = Kind | 'body' | 'authentication';

/** Requests in progress of all listeners. */
const inProgress: Record<PoolKind, number> = { login: 0, read: 0, change: 0, anonymous: 0, body: 0, authentication: 0 };
requestsInFlight.read(() => (Object.keys(inProgress) as PoolKind[]).map((kind) => [{ kind }, inProgress[kind]]));

/**
 * Returns the kind by which a request is counted. Reads must not wait for changes, which are written to etcd, nor for
 * logins, which compute a hash. Clients may also send the bodies of changes and logins slowly. Anonymous requests are
 * counted separately, so that they use no slots of users.
 */
function kindOf({ req: { method }, info, user }: Exchange): Kind {
  if (info.prefix === 'oauth') return 'login';
  if (user === undefined) return 'anonymous';
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS' ? 'read' : 'change';
}

/**
 * Limits the requests of each kind in total and per user or address. Watches and streams are limited only per user.
 * Probes are not limited. The filter runs after authentication, so that anonymous requests use no slots of users.
 */
export function inFlight(limits: () => Limits): RequestFilter {
  const kinds: Readonly<Record<Kind, Pool>> = {
    login: new Pool('login', 'logins'),
    read: new Pool('read', 'reads'),
    change: new Pool('change', 'changes'),
    anonymous: new Pool('anonymous', 'anonymous requests', { total: quarter, share: quarter }),
  };
  const bodies = new Pool('body', 'incomplete logins', { total: whole, share: tenth });
  const watches = new HolderSlots('watches and streams');
  return (exchange) => {
    const { user, sourceIP, info, path } = exchange;
    if (probes.has(path)) return;
    const holder = user === undefined ? addressKeys(sourceIP) : `user ${user.username}`;
    if (info.isLongRunning) return exchange.onResponseWritten(watches.take(holder, maxWatchesPerUser));
    const kind = kindOf(exchange);
    let free = kinds[kind].take(holder, limits());
    exchange.onResponseWritten(free);
    if (kind !== 'login') return;
    const move = (pool: Pool): void => {
      free();
      free = pool.take(holder, limits());
      exchange.onResponseWritten(free);
    };
    exchange.arrival = { awaitBody: () => move(bodies), bodyArrived: () => move(kinds.login) };
  };
}

/**
 * Limits the requests that wait for authentication, per address and in total. Requests with a token that was
 * authenticated before do not wait. Requests with a new token of this server wait only for the check of the signature.
 */
export function awaitingAuthentication(limits: () => Limits): (exchange: Exchange) => () => void {
  const pool = new Pool('authentication', 'requests that wait for authentication', { total: fourfold, share: double });
  return ({ sourceIP }) => pool.take(addressKeys(sourceIP), limits());
}

/** Fraction or multiple of a setting. */
interface Part {
  readonly factor: number;
  readonly text: string;
}

const whole: Part = { factor: 1, text: '' };
const quarter: Part = { factor: 1 / 4, text: 'a quarter of ' };
const tenth: Part = { factor: 1 / 10, text: 'a tenth of ' };
const double: Part = { factor: 2, text: 'twice ' };
const fourfold: Part = { factor: 4, text: 'four times ' };

/** Slots for requests of one kind. */
class Pool {
  readonly #kind: PoolKind;
  readonly #subject: string;
  readonly #total: Part;
  readonly #share: Part;
  readonly #perHolder: HolderSlots;
  #current = 0;

  /** `kind` is the label in metrics, `subject` the noun in messages. */
  constructor(kind: PoolKind, subject: string, { total, share } = { total: whole, share: whole }) {
    this.#kind = kind;
    this.#subject = subject;
    this.#total = total;
    this.#share = share;
    this.#perHolder = new HolderSlots(subject, `${share.text}requests.maxInFlightPerUser`);
  }

  /** Returns an idempotent function that frees the slot. Throws StatusError 429. */
  take(holder: ShareHolder, { maxInFlight, maxInFlightPerUser }: Limits): () => void {
    const total = Math.ceil(maxInFlight * this.#total.factor);
    if (this.#current >= total)
      throw tooManyInProgress(`${total} ${this.#subject}`, `${this.#total.text}requests.maxInFlight`);
    const free = this.#perHolder.take(holder, Math.ceil(maxInFlightPerUser * this.#share.factor));
    this.#current += 1;
    inProgress[this.#kind] += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      free();
      this.#current -= 1;
      inProgress[this.#kind] -= 1;
    };
  }
}

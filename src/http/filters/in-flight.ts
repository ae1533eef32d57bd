import { HolderSlots, tooManyUnderWay } from '../../runtime/holder-slots.ts';
import { addressKeys, type ShareHolder } from '../../runtime/shares.ts';
import type { PlatformConfiguration } from '../../config/schema.ts';
import type { Exchange, RequestFilter } from '../exchange.ts';
import { countInFlight } from '../../runtime/metrics.ts';
import { probes } from './access-log.ts';

/** A watch costs little but its buffer, and kubectl, consoles and controllers hold a handful each. */
const maxWatchesPerUser = 1_000;

type Limits = Pick<PlatformConfiguration['requests'], 'maxInFlight' | 'maxInFlightPerUser'>;

type Kind = 'login' | 'read' | 'change' | 'anonymous';

/**
 * Changes go to etcd and logins to a hash, and both have bodies that come as slowly as their sender likes: reading waits for neither.
 * Anonymous requests get documents, of which users need none.
 */
function kindOf({ req: { method }, info, user }: Exchange): Kind {
  if (info.prefix === 'oauth') return 'login';
  if (user === undefined) return 'anonymous';
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS' ? 'read' : 'change';
}

/**
 * Limits the requests of each kind, in total and per user or address; watches and streams per user alone. Probes are always answered.
 * It comes after authentication, so that anonymous requests use no slots of users.
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
    if (info.isLongRunning) return exchange.onAnswered(watches.take(holder, maxWatchesPerUser));
    const kind = kindOf(exchange);
    let free = kinds[kind].take(holder, limits());
    exchange.onAnswered(free);
    if (kind !== 'login') return;
    const move = (pool: Pool): void => {
      free();
      free = pool.take(holder, limits());
      exchange.onAnswered(free);
    };
    exchange.arrival = { awaitBody: () => move(bodies), bodyArrived: () => move(kinds.login) };
  };
}

/**
 * Limits the requests that wait for their authentication, per address and in total. Tokens that were authenticated before do not wait,
 * and those of this server only for the check of a signature.
 */
export function awaitingAuthentication(limits: () => Limits): (exchange: Exchange) => () => void {
  const pool = new Pool('authentication', 'requests that wait for authentication', { total: fourfold, share: double });
  return ({ sourceIP }) => pool.take(addressKeys(sourceIP), limits());
}

/** Part of a setting. */
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
  readonly #kind: string;
  readonly #what: string;
  readonly #total: Part;
  readonly #share: Part;
  readonly #ofHolder: HolderSlots;
  #current = 0;

  /** `kind`: in the metrics. */
  constructor(kind: string, what: string, { total, share } = { total: whole, share: whole }) {
    this.#kind = kind;
    this.#what = what;
    this.#total = total;
    this.#share = share;
    this.#ofHolder = new HolderSlots(what, `${share.text}requests.maxInFlightPerUser`);
  }

  /** Returns the function that frees the slot; it may be called again. Throws StatusError 429. */
  take(holder: ShareHolder, { maxInFlight, maxInFlightPerUser }: Limits): () => void {
    const total = Math.ceil(maxInFlight * this.#total.factor);
    if (this.#current >= total)
      throw tooManyUnderWay(`${total} ${this.#what}`, `${this.#total.text}requests.maxInFlight`);
    const free = this.#ofHolder.take(holder, Math.ceil(maxInFlightPerUser * this.#share.factor));
    this.#current += 1;
    countInFlight(this.#kind, 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      free();
      this.#current -= 1;
      countInFlight(this.#kind, -1);
    };
  }
}

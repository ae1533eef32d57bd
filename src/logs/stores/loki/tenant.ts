/** What Loki is asked as, and how much at once: what a tenant may is learnt from its refusals. */
import type { LogStoreSettings } from '../../../config/log-stores.ts';
import { endpointOf, type SecretReader } from '../remote/endpoint.ts';
import { LimitExceeded, LokiClient, type LokiLimits } from './client.ts';

const day = 86_400;
/** As Loki has them by default; a tenant may have less. */
const usual: LokiLimits = { entries: 5_000, series: 500, length: 30 * day };
const leastLength = 3_600;

export class Tenant {
  readonly client: LokiClient;
  readonly settings: LogStoreSettings<'loki'>;
  #limits = usual;

  constructor(name: string, settings: LogStoreSettings<'loki'>, secrets: SecretReader) {
    const { tenant } = settings;
    this.settings = settings;
    this.client = new LokiClient(name, {
      ...endpointOf(name, settings, secrets),
      headers: {
        ...(tenant === undefined ? {} : { 'X-Scope-OrgID': tenant }),
        // A stream is what its labels say, whatever else is known of each of its records.
        'X-Loki-Response-Encoding-Flags': 'categorize-labels',
      },
    });
  }

  get limits(): LokiLimits {
    return this.#limits;
  }

  /** Asks again for less where it may ask for less than usual. */
  async within<T>(ask: () => Promise<T>): Promise<T> {
    for (;;) {
      const { limits } = this;
      try {
        return await ask();
      } catch (error) {
        if (!this.learns(error, limits)) throw error;
      }
    }
  }

  /** Returns whether to ask again helps. `asked`: the limits that the request kept to; a concurrent one may have learned others since. */
  learns(error: unknown, asked: LokiLimits): boolean {
    if (!(error instanceof LimitExceeded)) return false;
    const { limit, most } = error.allowed;
    const before = this.#limits[limit];
    if (before < asked[limit]) return true;
    const now = limit === 'length' ? Math.max(leastLength, Math.floor(before / 2)) : (most ?? before);
    if (now >= before || now < 1) return false;
    this.#limits = { ...this.#limits, [limit]: now };
    return true;
  }
}

/** Tenant of Loki and its limits, which are learned from error responses. */
import type { LogStoreSettings } from '../../../config/log-stores.ts';
import { endpointOf, type SecretReader } from '../remote/endpoint.ts';
import { LimitExceeded, LokiClient, type LokiLimits } from './client.ts';

const day = 86_400;
/** Default limits of Loki. A tenant may have lower limits. */
const defaultLimits: LokiLimits = { entries: 5_000, series: 500, length: 30 * day };
const minLength = 3_600;

export class Tenant {
  readonly client: LokiClient;
  readonly settings: LogStoreSettings<'loki'>;
  #limits = defaultLimits;

  constructor(name: string, settings: LogStoreSettings<'loki'>, secrets: SecretReader) {
    const { tenant } = settings;
    this.settings = settings;
    this.client = new LokiClient(name, {
      ...endpointOf(name, settings, secrets),
      headers: {
        ...(tenant === undefined ? {} : { 'X-Scope-OrgID': tenant }),
        // Keeps structured metadata of single records out of the labels of streams.
        'X-Loki-Response-Encoding-Flags': 'categorize-labels',
      },
    });
  }

  get limits(): LokiLimits {
    return this.#limits;
  }

  /** Repeats `send` with lower limits if the limits of the tenant are lower than assumed. */
  async retryWithinLimits<T>(send: () => Promise<T>): Promise<T> {
    for (;;) {
      const { limits } = this;
      try {
        return await send();
      } catch (error) {
        if (!this.learnLimit(error, limits)) throw error;
      }
    }
  }

  /**
   * Returns whether the request should be repeated. `used`: limits of the request. A concurrent request may have
   * learned lower limits in the meantime.
   */
  learnLimit(error: unknown, used: LokiLimits): boolean {
    if (!(error instanceof LimitExceeded)) return false;
    const { limit, max } = error.allowed;
    const current = this.#limits[limit];
    if (current < used[limit]) return true;
    const next = limit === 'length' ? Math.max(minLength, Math.floor(current / 2)) : (max ?? current);
    if (next >= current || next < 1) return false;
    this.#limits = { ...this.#limits, [limit]: next };
    return true;
  }
}

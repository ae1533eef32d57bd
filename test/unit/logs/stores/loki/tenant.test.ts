import { expect, test } from '@jest/globals';
import type { LogStoreSettings } from '../../../../../src/config/log-stores.ts';
import { LimitExceeded } from '../../../../../src/logs/stores/loki/client.ts';
import { Tenant } from '../../../../../src/logs/stores/loki/tenant.ts';

const settings = { url: 'http://127.0.0.1:1' } as unknown as LogStoreSettings<'loki'>;

test.each([
  ['entries', '100', 100],
  ['series', '50', 50],
  ['length', undefined, 15 * 86_400],
] as const)(
  'two concurrent queries that exceed the Loki limit "%s" are both repeated within the limit',
  async (limit, max, learned) => {
    const tenant = new Tenant('loki', settings, { read: () => '' });
    const { promise: bothSent, resolve } = Promise.withResolvers<void>();
    let sent = 0;
    const query = async (): Promise<number> => {
      const { [limit]: requested } = tenant.limits;
      sent += 1;
      if (sent === 2) resolve();
      await bothSent;
      if (requested > learned) throw new LimitExceeded('too much', limit, max);
      return requested;
    };
    expect(await Promise.all([tenant.retryWithinLimits(query), tenant.retryWithinLimits(query)])).toEqual([
      learned,
      learned,
    ]);
    await tenant.client.close();
  },
);

import { forbidden } from '../../errors.ts';
import type { Filter } from '../exchange.ts';

const what = Object.entries({ 'impersonate-user': 'users', 'impersonate-group': 'groups', 'impersonate-uid': 'uids' });

/**
 * Who sends these headers of kube-apiserver's wants what another may see, and must not be shown what they may see themselves. A
 * request through the aggregator has none left.
 */
export const impersonation: Filter = ({ req: { headers }, user }) => {
  if (user === undefined) return;
  for (const [header, resource] of what) {
    const name = headers[header];
    if (typeof name === 'string')
      throw forbidden(
        { group: '', resource },
        name,
        `User "${user.username}" cannot impersonate: this server answers as the caller alone`,
      );
  }
};

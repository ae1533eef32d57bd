import { subjectOf } from '../../accounts/directory/subjects.ts';
import type { Unredeemed } from '../../tokens/sessions/codes.ts';
import { BoundedCache } from '../../runtime/bounded-cache.ts';
import { OAuthError, type OAuthErrorCode } from '../../runtime/errors.ts';
import { described, text } from '../../http/schema.ts';
import { defineGrant, type Grant, type GrantParts } from './grant.ts';
import { refreshGrantType } from './refresh-token.ts';

export const deviceGrantType = 'urn:ietf:params:oauth:grant-type:device_code';

/** Minimum milliseconds between two polls of a device. Each early poll adds the same amount to the interval. */
export const pollInterval = 5_000;
/**
 * Lifetime of a device code in milliseconds. Within this time, the user must open a browser, log in and enter the user
 * code.
 */
export const deviceCodeLife = 10 * 60_000;

const refusals: Readonly<Record<Unredeemed, [OAuthErrorCode, string]>> = {
  waiting: ['authorization_pending', 'the user has not authorized the device yet; keep polling'],
  refused: ['access_denied', 'the user denied the request'],
  ended: ['expired_token', 'the code has expired; start again'],
  unknown: ['invalid_grant', 'the code is unknown'],
  reused: ['invalid_grant', 'the code was used before'],
};

const refused = (reason: Unredeemed): OAuthError => new OAuthError(...refusals[reason]);

/** Implements RFC 8628 section 3.4. */
export function deviceCodeGrant({ directory, sessions, clock }: GrantParts): Grant {
  /** Earliest next poll of each session, and the current interval between its polls. */
  const polls = new BoundedCache<{ readonly from: number; readonly interval: number }>({
    name: 'device_polls',
    maxEntries: 10_000,
    maxBytes: 4 * 1024 * 1024,
    ttl: deviceCodeLife,
    clock,
  });

  /**
   * Throws if the device polls too early. An early poll increases the interval of all later polls (RFC 8628 section
   * 3.5).
   */
  function checkInterval(sid: string): void {
    const now = clock();
    const { from, interval } = polls.get(sid) ?? { from: now, interval: pollInterval };
    const next = now < from ? interval + pollInterval : interval;
    // Network latency varies, so a poll is accepted up to a second early.
    polls.set(sid, { from: now + next - 1_000, interval: next });
    if (now < from) throw new OAuthError('slow_down', `wait ${next / 1_000} seconds between requests`);
  }

  return defineGrant({
    grantType: deviceGrantType,
    parameters: { device_code: described('`device_code` from `POST /oauth/device_authorization`', text) },
    async find({ fields: { device_code: code }, client, isRetry }) {
      // A code without a valid HMAC was not issued by this server and must not fill the cache.
      const sid = sessions.codes.sessionOf(code);
      if (sid !== undefined && !isRetry) checkInterval(sid);
      const found = await sessions.codes.find(code, client.name, isRetry);
      if (typeof found === 'string') throw refused(found);
      const subject = subjectOf(found.session, directory);
      if (subject === undefined) throw refused('unknown');
      return {
        subject,
        redeem: async () => {
          const redeemed = await found.use(client.grantTypes.includes(refreshGrantType));
          if (redeemed === 'changed') return redeemed;
          if (redeemed === 'ended') throw refused(redeemed);
          return { ...redeemed, subject, scope: redeemed.session.spec.scope };
        },
      };
    },
  });
}

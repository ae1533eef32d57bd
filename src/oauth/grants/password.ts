import { OAuthError } from '../../errors.ts';
import { required } from '../form.ts';
import { grantScope } from '../scope.ts';
import type { Grant, GrantParts } from './grant.ts';

const refused = (): OAuthError => new OAuthError('invalid_grant', 'the username or the password is wrong');

const limited = (seconds: number): OAuthError =>
  new OAuthError('invalid_grant', `too many failed logins; try again in ${seconds} s`, {
    status: 429,
    headers: { 'Retry-After': String(seconds) },
  });

/**
 * RFC 6749 section 4.3. Unknown user, wrong password and disabled user are one answer after the same work: exactly one
 * verification. The limit is asked before it, and again after: of guesses made at once no more are answered than of guesses made
 * one after another.
 */
export function passwordGrant({
  directory,
  passwords,
  passwordStore,
  limiter,
  sessions,
  multipleLogin,
}: GrantParts): Grant {
  return {
    grantType: 'password',
    parameters: [
      { name: 'username', required: true, description: 'The name of the user, or the e-mail address' },
      { name: 'password', required: true, description: 'The password of the user' },
      { name: 'scope', required: false, description: 'Words separated by spaces; "openid" adds an id_token' },
    ],
    async grant({ form, client, context }) {
      const username = required(form, 'username');
      const password = required(form, 'password');
      const scope = grantScope(form.get('scope'), client.scopes);
      const account = directory.named(username);
      // By whichever name: guesses at one user count together.
      const attempt = {
        username: account?.username ?? username.slice(0, 253),
        address: context.sourceIP,
        client: client.name,
      };
      const before = limiter.retryAfter(attempt);
      if (before > 0) throw limited(before);
      const right = await passwords.verify(account?.passwordHash, password, account?.active);
      const after = limiter.retryAfter(attempt);
      if (after > 0) throw limited(after);
      if (!right || account === undefined) {
        limiter.failed(attempt);
        context.log.info('login failed', {
          auditID: context.auditID,
          username,
          client: client.name,
          sourceIP: context.sourceIP,
        });
        throw refused();
      }
      limiter.succeeded(attempt);
      void passwordStore.refresh(account, password);
      const others = multipleLogin() ? [] : sessions.ofUser(account.uid);
      const { session, refreshToken } = await sessions.create({
        userName: account.username,
        userUID: account.uid,
        clientID: client.name,
        ...(scope === undefined ? {} : { scope }),
        credentialID: account.credentialID,
      });
      await Promise.all(others.map((other) => sessions.revoke(other.metadata.name)));
      context.log.info('login', {
        auditID: context.auditID,
        username,
        client: client.name,
        sid: session.metadata.name,
        sourceIP: context.sourceIP,
      });
      return { session, subject: account, refreshToken, scope };
    },
  };
}

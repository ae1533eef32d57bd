import type { NotChanged } from '../accounts/passwords/own.ts';
import { OAuthError } from '../runtime/errors.ts';

/** Why a password was not changed, as our pages tell it. */
export function passwordRefusal(refused: NotChanged): OAuthError {
  const message = `${refused.why === 'unfit' ? 'the new password ' : ''}${refused.message}`;
  if (refused.why !== 'limited') return new OAuthError('invalid_request', message);
  return new OAuthError('invalid_request', message, {
    status: 429,
    headers: { 'Retry-After': String(refused.retryAfter) },
  });
}

import type { Subject } from '../tokens/subject.ts';
import { kubernetesAudience } from '../tokens/jwt.ts';
import { OAuthError } from '../runtime/errors.ts';

/**
 * Whom the client wants to show the token to, by `audience` (RFC 8693 section 2.1): kube-apiserver, or us if it says nothing else.
 * Throws invalid_target for anybody else.
 */
export function audienceOf(form: ReadonlyMap<string, string>, issuer: string): string {
  const audience = form.get('audience') ?? issuer;
  if (audience !== issuer && audience !== kubernetesAudience)
    throw new OAuthError('invalid_target', `tokens are given for ${issuer} and for ${kubernetesAudience}`);
  return audience;
}

/** Throws invalid_target for who must change the password: only we know of that, so for nobody else there is a token until then. */
export function demandAudience({ passwordChangeRequired }: Subject, audience: string, issuer: string): void {
  if (passwordChangeRequired === true && audience !== issuer)
    throw new OAuthError(
      'invalid_target',
      `the password must be changed first; until then tokens are for ${issuer} alone`,
    );
}

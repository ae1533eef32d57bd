import { OAuthError } from '../../runtime/errors.ts';
import { html, type Html } from '../../http/response/html.ts';

/** The fields of a form for a new password. */
export const newPasswordFields: Html = html`<label for="new-password">New password</label>
  <input
    id="new-password"
    name="new_password"
    type="password"
    autocomplete="new-password"
    required
    minlength="8"
    aria-describedby="rules"
  />
  <p class="hint" id="rules">At least 8 characters, and not one of the common ones.</p>
  <label for="new-password-again">The same again</label>
  <input id="new-password-again" name="new_password_again" type="password" autocomplete="new-password" required />`;

/** What was typed in there: whoever mistypes what cannot be seen would be locked out. Undefined where nobody was asked. */
export function newPasswordIn(form: ReadonlyMap<string, string>): string | undefined {
  const next = form.get('new_password');
  if (next !== undefined && form.get('new_password_again') !== next)
    throw new OAuthError('invalid_request', 'the new password is not the same both times');
  return next;
}

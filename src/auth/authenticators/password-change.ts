import { StatusError } from '../../runtime/errors.ts';
import type { UserInfo } from '../user.ts';

/**
 * The user is who they say, and may do nothing but change the password. Whoever asks for an identity and does not know of this error
 * refuses the request.
 */
export class PasswordChangeRequired extends StatusError {
  readonly user: UserInfo;

  constructor(user: UserInfo) {
    super(
      'Forbidden',
      403,
      'the password must be changed first: PUT /kapis/iam.platform.io/v1alpha2/users/~/password with currentPassword and password',
      {
        details: {
          group: 'iam.platform.io',
          kind: 'users',
          name: user.username,
          causes: [{ reason: 'PasswordChangeRequired' }],
        },
      },
    );
    this.user = user;
  }
}

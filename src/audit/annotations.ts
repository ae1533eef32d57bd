/** Keys of the annotations of events on `/oauth`. */
export const annotations = {
  /** The authenticated OAuth client. */
  client: 'oauth.platform.io/client',
  grantType: 'oauth.platform.io/grant-type',
  /** The session that was created or used. */
  session: 'oauth.platform.io/session',
  /** The user who logs in, if there is one of this name. */
  username: 'oauth.platform.io/username',
  /** The decision of the user, now or earlier, whether the client is allowed to act for them: Allowed or Refused. */
  authorization: 'oauth.platform.io/authorization',
  /** Result of a login: a value of the label `outcome` of the metric `logins_total`. */
  login: 'oauth.platform.io/login',
} as const;

/** Annotation keys of the events of requests to `/oauth`. */
export const annotations = {
  /** The authenticated OAuth client. */
  client: 'oauth.platform.io/client',
  grantType: 'oauth.platform.io/grant-type',
  /** The session that was created or used. */
  session: 'oauth.platform.io/session',
  /** Name of the user who logs in, if such a user exists. */
  username: 'oauth.platform.io/username',
  /**
   * Current or earlier decision of the user whether the client is allowed to act on their behalf: Allowed or Refused.
   */
  authorization: 'oauth.platform.io/authorization',
  /** Result of a login: a value of the label `outcome` of the metric `logins_total`. */
  login: 'oauth.platform.io/login',
} as const;

/** What events of `/oauth` say beside what every event says, by these keys. */
export const annotations = {
  /** The OAuth client, once it has shown that it is the one. */
  client: 'oauth.platform.io/client',
  grantType: 'oauth.platform.io/grant-type',
  /** The session that was begun or used. */
  session: 'oauth.platform.io/session',
  /** Whose login it was, where there is such a user. */
  username: 'oauth.platform.io/username',
  /** Whether its user, or what was decided before, lets the client act for them: Allowed or Refused. */
  authorization: 'oauth.platform.io/authorization',
  /** What became of it: LoggedIn, WrongPassword, NoPassword, Disabled or Limited. */
  login: 'oauth.platform.io/login',
} as const;

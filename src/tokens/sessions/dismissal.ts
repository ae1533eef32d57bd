/** Which sessions end because what they were made for is gone. */
import type { SessionSpec } from './session.ts';

/** Those that have all of this. */
export interface Dismissed {
  readonly userUID?: string;
  readonly clientID?: string;
  /** Begun with this password. */
  readonly credentialID?: string;
  /** Begun at this identity provider, and as whom there. */
  readonly provider?: string;
  readonly subject?: string;
}

export function isAmong({ userUID, clientID, credentialID, identity }: SessionSpec, dismissed: Dismissed): boolean {
  const has = { userUID, clientID, credentialID, provider: identity?.provider, subject: identity?.subject };
  return (Object.keys(dismissed) as (keyof Dismissed)[]).every((key) => dismissed[key] === has[key]);
}

/** Whom a token speaks of. One object as long as nothing of it changes, so that others can keep what they know by it. */
export interface Subject {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly displayName: string | undefined;
  readonly email: string | undefined;
  readonly passwordChangeRequired?: boolean;
}

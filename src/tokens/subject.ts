/**
 * The user that a token represents. The object stays the same until a property changes, so caches can use it as a key.
 */
export interface Subject {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly displayName: string | undefined;
  readonly email: string | undefined;
  readonly passwordChangeRequired?: boolean;
}

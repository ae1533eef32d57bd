/** What `make` makes of the issuer, made when it is first asked for, and again once the issuer is another. */
export function byIssuer<T>(issuer: () => string, make: (issuer: string) => T): () => T {
  let made: { readonly issuer: string; readonly value: T } | undefined;
  return () => {
    const now = issuer();
    if (made?.issuer !== now) made = { issuer: now, value: make(now) };
    return made.value;
  };
}

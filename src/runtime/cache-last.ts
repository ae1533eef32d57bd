/** Returns a function that caches the result of `make` for the last argument. */
export function cacheLast<A, B>(make: (argument: A) => B): (argument: A) => B {
  let last: { readonly argument: A; readonly result: B } | undefined;
  return (argument) => {
    if (last?.argument !== argument) last = { argument, result: make(argument) };
    return last.result;
  };
}

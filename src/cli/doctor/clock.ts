/** Clock skew, measured by the Date header of a response (RFC 9110 section 6.6.1), which has whole seconds. */

/** Milliseconds of skew that all checks of tokens and certificates tolerate. */
const tolerated = 10_000;

/**
 * Returns the milliseconds by which this machine is ahead of the sender of a response, negative if behind. Returns 0 if
 * the difference is tolerated, or if there is no date. `from`, `to`: local times before the request and after the
 * response.
 */
export function clockSkew(date: string | readonly string[] | undefined, from: number, to: number): number {
  const sent = new Date(String(date)).getTime();
  if (Number.isNaN(sent)) return 0;
  const skew = from > sent + 1_000 ? from - sent - 1_000 : Math.min(0, to - sent);
  return Math.abs(skew) <= tolerated ? 0 : skew;
}

export const describeSkew = (skew: number): string =>
  `${Math.round(Math.abs(skew) / 1_000)} s ${skew > 0 ? 'ahead of' : 'behind'}`;

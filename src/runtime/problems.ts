/** Size limits for error messages, because callers choose parts of them. */

/** Maximum characters of a message, which is also written to the audit log, and of all causes together. */
export const maxMessage = 2_048;
/** Maximum causes in a response. Users rarely read more problems. */
export const maxProblems = 20;

export const shortened = (text: string, max: number): string => (text.length > max ? `${text.slice(0, max)}…` : text);

/** Describes the first problems, as many as fit into a message, and counts the rest. */
export function describeProblems<T>(problems: readonly T[], describe: (problem: T) => string): string {
  const texts: string[] = [];
  let left = maxMessage - ' and 65536 more'.length;
  for (const text of problems.slice(0, maxProblems).map(describe)) {
    left -= text.length + 2;
    if (left < 0 && texts.length > 0) break;
    texts.push(text);
  }
  const more = problems.length - texts.length;
  return [...texts, ...(more === 0 ? [] : [`and ${more} more`])].join('; ');
}

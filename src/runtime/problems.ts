/** Limits of what an error says: callers choose parts of it. */

/** Characters of a message, which the audit log has too, and of all causes together. */
export const maxMessage = 2_048;
/** Causes in a response: a form may have more problems than anybody reads. */
export const maxProblems = 20;

export const shortened = (text: string, max: number): string => (text.length > max ? `${text.slice(0, max)}…` : text);

/** Describes as many problems as one message shows, and counts the others. */
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

/** Longer texts are nothing to read. */
const longest = 1_000;

/**
 * What somebody else wrote, for a terminal: characters that would steer it, begin lines, turn the direction of the text or hide in it are
 * named instead.
 */
export function shown(text: string): string {
  const plain = text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu,
    (one) => `\\u{${one.codePointAt(0)?.toString(16)}}`,
  );
  return plain.length > longest ? `${plain.slice(0, longest)}…` : plain;
}

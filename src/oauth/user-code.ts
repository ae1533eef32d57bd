import { randomInt } from 'node:crypto';

/**
 * Letters of RFC 8628 section 6.1. Vowels are excluded because they could form words. Letters that look alike are
 * excluded too. There are 20^8 codes.
 */
const letters = 'BCDFGHJKLMNPQRSTVWXZ';
const length = 8;

export const newUserCode = (): string => Array.from({ length }, () => letters[randomInt(letters.length)]).join('');

/** Formats a code for people. */
export const shown = (userCode: string): string => `${userCode.slice(0, 4)}-${userCode.slice(4)}`;

/** Parses the input of a user; undefined if it cannot be a code. */
export function userCodeIn(typed: string): string | undefined {
  const code = typed.toUpperCase().replace(/[\s-]/g, '');
  return new RegExp(`^[${letters}]{${length}}$`).test(code) ? code : undefined;
}

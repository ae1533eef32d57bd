/** The fenced blocks of the documents, in their order. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Block {
  readonly language: string;
  readonly text: string;
}

export function blocksOf(file: string): Block[] {
  const text = readFileSync(join(import.meta.dirname, '../../../docs', file), 'utf8');
  return [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', block = '']) => ({
    language,
    text: block,
  }));
}

export const blocksIn = (file: string, language: string): string[] =>
  blocksOf(file).flatMap((block) => (block.language === language ? [block.text] : []));

import { parse } from 'yaml';

/** What a YAML document says. Throws for what is none; warnings are nobody's to read. */
export const parseYAML = (text: string): unknown => parse(text, { logLevel: 'silent' });

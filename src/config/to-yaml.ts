import { stringify } from 'yaml';

/** For people to read, and for programs: lines are not folded. */
export const toYAML = (value: unknown): string => stringify(value, { lineWidth: 0 });

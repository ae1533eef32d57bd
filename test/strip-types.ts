import { stripTypeScriptTypes } from 'node:module';

/**
 * A jest transform from TypeScript to JavaScript. The transform replaces types by blanks, so that lines and columns do
 * not change.
 */
export default {
  process: (source: string): { code: string } => ({ code: stripTypeScriptTypes(source, { mode: 'strip' }) }),
};

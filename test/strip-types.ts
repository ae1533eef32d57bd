import { stripTypeScriptTypes } from 'node:module';

/** A jest transform: TypeScript to JavaScript by blanking the types, which keeps every line and column. */
export default {
  process: (source: string): { code: string } => ({ code: stripTypeScriptTypes(source, { mode: 'strip' }) }),
};

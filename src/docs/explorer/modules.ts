import { readdirSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';

/** In a build, import.meta.url is the URL of the bundle, and the folder `browser` is beside the bundle. */
const folder = new URL('browser/', import.meta.url);

/** Returns the modules of the page by file name: the bundle of a build, or sources with their types stripped. */
export function readModules(): ReadonlyMap<string, string> {
  const names = readdirSync(folder).filter((name) => /\.[jt]s$/.test(name));
  return new Map(
    names.map((name) => {
      const source = readFileSync(new URL(name, folder), 'utf8');
      // The source map is not served.
      const text = name.endsWith('.ts')
        ? stripTypeScriptTypes(source)
        : source.replace(/^\/\/# sourceMappingURL=.*$/m, '');
      return [name, text];
    }),
  );
}

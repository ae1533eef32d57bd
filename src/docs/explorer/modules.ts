import { readdirSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';

const folder = new URL('browser/', import.meta.url);

/** The script of the page, by the names of its modules, as browsers run it: compiled, or as it stands without its types. */
export function readModules(): ReadonlyMap<string, string> {
  const names = readdirSync(folder).filter((name) => /\.[jt]s$/.test(name));
  return new Map(
    names.map((name) => {
      const source = readFileSync(new URL(name, folder), 'utf8');
      // Browsers would ask for the map, which is not served.
      const text = name.endsWith('.ts')
        ? stripTypeScriptTypes(source)
        : source.replace(/^\/\/# sourceMappingURL=.*$/m, '');
      return [name, text];
    }),
  );
}

/** Sections of a changelog in Markdown, with a heading of the second level for each version. */

/** Returns the text below the heading of a version, such as `## 1.2.3` or `## 1.2.3 (2026-01-31)`. */
export function section(changelog: string, version: string): string | undefined {
  const [, ...parts] = changelog.split(/^## /m);
  const found = parts.find((part) => /^\S*/.exec(part)?.[0] === version);
  return found?.slice(found.indexOf('\n')).trim();
}

/** Returns the items of the first level of all lists as lines of plain text. */
export function items(text: string): string[] {
  return text
    .split(/^- /m)
    .slice(1)
    .map((item) => (item.split(/^#/m)[0] as string).replaceAll(/\s+/g, ' ').trim());
}

/** Makes relative links work outside the repository. `base` is the URL of the folder of the changelog. */
export const absoluteLinks = (text: string, base: string): string =>
  text.replaceAll(/\]\((?![a-z]+:|#)([^)]+)\)/g, (_, path: string) => `](${base}/${path})`);

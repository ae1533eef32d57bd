/** Records every password and token of the run, so that the tests can search the logs for these secrets. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lab } from './lab.ts';
import { clientSecrets, passwords } from './people.ts';

const file = (): string => join(lab().dir, 'secrets');

// The default client has the secret `platform`, which is also its name. Texts this short are therefore not treated as
// secrets.
const isSecret = (text: unknown): text is string => typeof text === 'string' && text.length > 8;

/** Secrets recorded by this test file. */
const written = new Set<string>();

export function remember(...texts: readonly unknown[]): void {
  const lines = texts
    .filter(isSecret)
    .filter((text) => !written.has(text))
    .map((text) => {
      written.add(text);
      return `${JSON.stringify(text)}\n`;
    });
  if (lines.length > 0) appendFileSync(file(), lines.join(''), { mode: 0o600 });
}

/** Returns all recorded secrets, each unchanged and percent-encoded. */
export function remembered(): string[] {
  const lines = existsSync(file()) ? readFileSync(file(), 'utf8').trim().split('\n') : [];
  const kept = lines.filter((line) => line !== '').map((line) => JSON.parse(line) as string);
  const all = [...kept, lab().adminPassword, ...Object.values(passwords), ...Object.values(clientSecrets)];
  return [...new Set(all.flatMap((text) => [text, encodeURIComponent(text)]))];
}

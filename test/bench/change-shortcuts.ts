/** Shortcuts for changes of cached objects and of the configuration. */
import { configuredUserUID, urlNamespace, uuidV5 } from '../../src/accounts/directory/account.ts';
import { parseWatchEvent } from '../../src/cluster/cache/kube-responses.ts';
import { ManagedFields } from '../../src/cluster/cache/managed-fields.ts';
import { node } from './objects.ts';
import type { Compared } from './shortcuts.ts';

const changed = node(17, 1_000) as { readonly metadata: { readonly managedFields: readonly object[] } };
const eventText = (space = ''): Buffer =>
  Buffer.from(`{${space}"type":"MODIFIED","object":${JSON.stringify(changed)}}`);
const unread = 'images';

export function eventHead(): Compared {
  const [written, spaced] = [eventText(), eventText(' ')];
  return {
    name: 'the head of a watch event recognized by its text',
    min: 1.1,
    short: () => parseWatchEvent(written, unread),
    plain: () => parseWatchEvent(spaced, unread),
  };
}

export function unreadStatus(): Compared {
  const event = eventText();
  return {
    name: 'a changed node decoded without its images',
    min: 1.1,
    short: () => parseWatchEvent(event, unread),
    plain: () => parseWatchEvent(event),
  };
}

const managedFieldsOf = (manager: string): Buffer =>
  Buffer.from(JSON.stringify(changed.metadata.managedFields.map((entry) => ({ ...entry, manager }))));

export function latestTemplates(): Compared {
  const same = managedFieldsOf('kubelet');
  const different = Array.from({ length: 6 }, (_, index) => managedFieldsOf(`kubelet-${index}`));
  const [one, several] = [new ManagedFields(), new ManagedFields()];
  // The second object makes the template.
  for (let time = 0; time < 2; time += 1) {
    one.pack(same);
    for (const bytes of different) several.pack(bytes);
  }
  let next = 0;
  return {
    name: 'managedFields compared with the latest templates',
    min: 2,
    short: () => one.pack(same),
    // None of the latest templates matches.
    plain: () => several.pack(different[(next = (next + 1) % different.length)] ?? same),
  };
}

export function issuerNamespace(): Compared {
  const issuer = 'https://platform.example';
  return {
    name: 'the namespace of the issuer hashed once',
    min: 1.3,
    short: () => configuredUserUID(issuer, 'alice'),
    plain: () => uuidV5(uuidV5(urlNamespace, issuer), 'alice'),
  };
}

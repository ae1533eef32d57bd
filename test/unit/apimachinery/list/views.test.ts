import { expect, test } from '@jest/globals';
import { coreView, listOf } from '../../../../src/apimachinery/list/views.ts';
import { ManagedFields } from '../../../../src/cluster/cache/managed-fields.ts';
import { storeObject, type StoredObject } from '../../../../src/cluster/cache/stored-object.ts';
import { nodes, type NodeFields } from '../../../../src/resources/kinds/nodes.ts';
import { nodeObject } from '../../../labs/resources.ts';

const managedFields = new ManagedFields();

/** Returns a node with managedFields of at least this many bytes. */
function stored(name: string, size: number): StoredObject<NodeFields> {
  const object = nodeObject(name);
  Object.assign(object.metadata, { managedFields: [{ manager: name.repeat(size / name.length) }] });
  return storeObject(object, Buffer.from(JSON.stringify(object)), {
    selfLink: () => '/x',
    fields: (decoded) => nodes.fields(decoded),
    managedFields,
  });
}

test.each([
  ['a short list', 3, 100, 1],
  ['a list of large managedFields', 20, 1_000_000, 7],
  ['a list of many objects', 600, 100, 3],
])(
  '%s with managedFields is encoded in parts of about 2 MB, and its length is known',
  async (_, count, size, parts) => {
    const view = coreView(nodes, true);
    const objects = Array.from({ length: count }, (__, index) => stored(`node-${index}`, size));
    const list = listOf(view, objects, view.frame({ resourceVersion: 1 }, count), new AbortController());
    const encoded: Buffer[] = [];
    for await (const part of list.parts) encoded.push(Buffer.concat(part));
    expect(encoded).toHaveLength(parts);
    const text = Buffer.concat(encoded).toString();
    expect(list.length).toBe(text.length);
    const { items } = JSON.parse(text) as { items: { metadata: { name: string } }[] };
    expect(items.map(({ metadata }) => metadata.name)).toEqual(objects.map(({ name }) => name));
  },
);

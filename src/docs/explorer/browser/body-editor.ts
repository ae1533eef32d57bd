import { button, el, folded, phrase, unique, type Child } from './dom.ts';
import { textOf, type ShownContent, type ShownOperation, type SchemaReader } from './openapi.ts';
import { control } from './control.ts';
import { formType, isSecret, type Field, type SentBody } from './request.ts';
import { exampleOf, propertiesOf, requiredOf } from './schema.ts';
import { fieldLine, schemaLine, schemaTree } from './schema-view.ts';

interface Editor {
  readonly element: HTMLElement;
  /** Undefined: none is sent. */
  readonly read: () => SentBody | undefined;
}

/** To write what is sent: as text, or as the fields of a form. */
export function bodyEditor(
  { isRequired, content }: NonNullable<ShownOperation['body']>,
  schemas: SchemaReader,
): Editor {
  const id = unique('type');
  const choice = el('select', { id }, ...content.map(({ type }) => el('option', {}, type)));
  const place = el('div');
  let editor: Editor;
  const show = (): void => {
    const chosen = content[choice.selectedIndex] ?? { type: 'application/json', schema: {} };
    const isForm = chosen.type === formType || hasSecret(chosen, schemas);
    editor = isForm ? fieldsEditor(chosen, schemas) : textEditor(chosen, schemas, isRequired);
    place.replaceChildren(editor.element);
  };
  show();
  choice.addEventListener('change', show);
  const types: readonly Child[] =
    content.length === 1
      ? [el('p', { class: 'hint' }, content[0]?.type)]
      : [el('label', { for: id }, 'Media type'), choice];
  const element = el('section', {}, el('h3', {}, isRequired ? 'Body' : 'Body, if any'), ...types, place);
  return { element, read: () => editor.read() };
}

function textEditor({ type, schema }: ShownContent, schemas: SchemaReader, isRequired: boolean): Editor {
  const id = unique('body');
  const example = (): string => JSON.stringify(exampleOf(schema, schemas), undefined, 2);
  const area = el('textarea', { id, spellcheck: 'false', autocomplete: 'off', autocapitalize: 'off', rows: 3 });
  const set = (text: string): void => {
    area.value = text;
    area.rows = Math.min(24, Math.max(3, text.split('\n').length));
  };
  if (isRequired) set(example());
  const restore = button('Put in an example', () => {
    set(example());
    area.dispatchEvent(new Event('input', { bubbles: true }));
  });
  const element = el(
    'div',
    {},
    el('label', { for: id }, 'What is sent'),
    area,
    restore,
    folded(['Schema: ', ...schemaLine(schema, schemas)], () => schemaTree(schema, schemas)),
  );
  return { element, read: () => (area.value.trim() === '' ? undefined : { type, text: area.value }) };
}

/** Texts by name, one of which is for nobody to see. */
function hasSecret({ schema }: ShownContent, schemas: SchemaReader): boolean {
  const fields = propertiesOf(schemas.resolve(schema)).map(([name, one]) => [name, schemas.resolve(one)] as const);
  return (
    fields.every(([, { type }]) => type === 'string') && fields.some(([name, { format }]) => isSecret(name, format))
  );
}

/** All fields of the schema; those that are left empty are not sent. */
function fieldsEditor({ type, schema: given }: ShownContent, schemas: SchemaReader): Editor {
  const schema = schemas.resolve(given);
  const required = requiredOf(schema);
  const fields = propertiesOf(schema).map(([name, one]) => {
    const resolved = schemas.resolve(one);
    const secret = isSecret(name, resolved['format']);
    const about = [...phrase(textOf(resolved['description'])), ' ', ...fieldLine(one, schemas)];
    return { name, ...control({ name, schema: resolved, isRequired: required.has(name), isSecret: secret, about }) };
  });
  const read = (): SentBody => {
    const filledIn = fields
      .map(({ name, input }): Field => ({ name, value: input.value }))
      .filter(({ value }) => value !== '');
    if (type === formType) return { fields: filledIn };
    const text = JSON.stringify(Object.fromEntries(filledIn.map(({ name, value }) => [name, value])));
    return { type, text, isSecret: true };
  };
  const note = 'curl reads the body from its input, as there is a password in it.';
  const element = el(
    'div',
    {},
    el('div', { class: 'fields' }, ...fields.map((field) => field.element)),
    type === formType ? undefined : el('p', { class: 'hint' }, note),
  );
  return { element, read };
}

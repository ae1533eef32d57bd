import { button, el, folded, phrase, unique, type Child } from './dom.ts';
import { textOf, type ShownContent, type ShownExample, type ShownOperation, type SchemaReader } from './openapi.ts';
import { control } from './control.ts';
import { formType, isSecret, type Field, type SentBody } from './request.ts';
import { exampleOf, propertiesOf, requiredOf } from './schema.ts';
import { exampleText, fieldLine, schemaLine, schemaTree } from './schema-view.ts';

interface Editor {
  readonly element: HTMLElement;
  /** Returns the body to send; undefined if there is none. */
  readonly read: () => SentBody | undefined;
}

/** Edits a request body, as text or as the fields of a form. */
export function bodyEditor(
  { isRequired, content }: NonNullable<ShownOperation['body']>,
  schemas: SchemaReader,
): Editor {
  const id = unique('type');
  const choice = el('select', { id }, ...content.map(({ type }) => el('option', {}, type)));
  const container = el('div');
  let editor: Editor;
  const show = (): void => {
    const chosen = content[choice.selectedIndex] ?? { type: 'application/json', schema: {}, examples: [] };
    const isForm = chosen.type === formType || hasSecret(chosen, schemas);
    editor = isForm ? fieldsEditor(chosen, schemas) : textEditor(chosen, schemas, isRequired);
    container.replaceChildren(editor.element);
  };
  show();
  choice.addEventListener('change', show);
  const types: readonly Child[] =
    content.length === 1
      ? [el('p', { class: 'hint' }, content[0]?.type)]
      : [el('label', { for: id }, 'Media type'), choice];
  const element = el('section', {}, el('h3', {}, isRequired ? 'Body' : 'Body (optional)'), ...types, container);
  return { element, read: () => editor.read() };
}

/** Creates a button for each example, which fills in that example. */
const exampleButtons = (
  examples: readonly ShownExample[],
  target: HTMLElement,
  fill: (value: unknown) => void,
): HTMLElement =>
  el(
    'div',
    { class: 'buttons' },
    ...examples.map(({ title, value }) =>
      button(title === '' ? 'Insert example' : `Insert example: ${title}`, () => {
        fill(value);
        target.dispatchEvent(new Event('input', { bubbles: true }));
      }),
    ),
  );

function textEditor({ type, schema, examples }: ShownContent, schemas: SchemaReader, isRequired: boolean): Editor {
  const id = unique('body');
  const area = el('textarea', { id, spellcheck: 'false', autocomplete: 'off', autocapitalize: 'off', rows: 3 });
  const fill = (value: unknown): void => {
    area.value = exampleText(value, type);
    area.rows = Math.min(24, Math.max(3, area.value.split('\n').length));
  };
  const offered = examples.length > 0 ? examples : [{ title: '', value: exampleOf(schema, schemas) }];
  if (isRequired) fill(offered[0]?.value);
  const element = el(
    'div',
    {},
    el('label', { for: id }, 'Request body'),
    area,
    exampleButtons(offered, area, fill),
    folded(['Schema: ', ...schemaLine(schema, schemas)], () => schemaTree(schema, schemas)),
  );
  return { element, read: () => (area.value.trim() === '' ? undefined : { kind: 'text', type, text: area.value }) };
}

/** Returns whether all fields are strings, and at least one is secret. */
function hasSecret({ schema }: ShownContent, schemas: SchemaReader): boolean {
  const fields = propertiesOf(schemas.resolve(schema)).map(([name, one]) => [name, schemas.resolve(one)] as const);
  return (
    fields.every(([, { type }]) => type === 'string') && fields.some(([name, { format }]) => isSecret(name, format))
  );
}

/** Edits the body as fields; empty fields are not sent. */
function fieldsEditor({ type, schema: given, examples }: ShownContent, schemas: SchemaReader): Editor {
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
    if (type === formType) return { kind: 'form', fields: filledIn };
    const text = JSON.stringify(Object.fromEntries(filledIn.map(({ name, value }) => [name, value])));
    return { kind: 'input', type, text };
  };
  const fill = (value: unknown): void => {
    const values = new Map(Object.entries(value ?? {}));
    for (const { name, input } of fields) input.value = exampleText(values.get(name) ?? '', '');
  };
  const element = el('div', {}, el('div', { class: 'fields' }, ...fields.map((field) => field.element)));
  element.append(exampleButtons(examples, element, fill));
  if (type !== formType)
    element.append(
      el('p', { class: 'hint' }, 'Code samples read the body from standard input, because it contains a password.'),
    );
  return { element, read };
}

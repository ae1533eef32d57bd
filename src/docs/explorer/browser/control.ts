import { el, unique, type Child } from './dom.ts';
import type { ShownSchema } from './openapi.ts';
import { wordsIn } from './schema.ts';

interface ControlOptions {
  readonly name: string;
  readonly schema: ShownSchema;
  readonly isRequired: boolean;
  readonly isSecret?: boolean;
  /** Description and constraints of the value. */
  readonly about: readonly Child[];
  /** Location of a parameter, such as `query`. */
  readonly location?: string;
}

interface Control {
  readonly element: HTMLElement;
  readonly input: HTMLInputElement | HTMLSelectElement;
}

/** Returns the values of an enumeration. */
function valuesOf({ type, enum: values, const: only, pattern }: ShownSchema): readonly string[] | undefined {
  if (typeof only === 'string') return [only];
  if (type === 'boolean') return ['true', 'false'];
  const words = wordsIn(pattern);
  if (words !== undefined) return words;
  return Array.isArray(values) && values.every((one) => typeof one === 'string') ? values : undefined;
}

/** Creates a labelled input for one value. */
export function control({ name, schema, isRequired, isSecret = false, about, location }: ControlOptions): Control {
  const id = unique('field');
  const values = valuesOf(schema);
  const described = { id, 'aria-describedby': `${id}-about` };
  const input =
    values === undefined
      ? el('input', {
          ...described,
          type: isSecret ? 'password' : 'text',
          inputmode: schema['type'] === 'integer' ? 'numeric' : undefined,
          autocomplete: isSecret ? 'new-password' : 'off',
          autocapitalize: 'off',
          spellcheck: 'false',
        })
      : el('select', described, ...['', ...values].map((value) => el('option', {}, value)));
  const marks = [location, isRequired ? 'required' : undefined].filter((one) => one !== undefined);
  const label = el('label', { for: id }, el('code', {}, name));
  if (marks.length > 0) label.append(' ', el('span', { class: 'hint' }, marks.join(', ')));
  return { input, element: el('div', {}, label, input, el('p', { class: 'hint', id: `${id}-about` }, ...about)) };
}

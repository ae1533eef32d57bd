/** Creates DOM elements. All content is text, never markup. */
import { tokenKinds, tokensOf } from './json.ts';
import { blocksOf, type TextSpan } from './text.ts';

export type Child = Node | string | undefined;

type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** Creates an element. `true` sets an empty attribute; `false` and `undefined` set none. */
export function el<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes))
    if (value !== undefined && value !== false) element.setAttribute(attribute, value === true ? '' : String(value));
  element.append(...children.filter((child) => child !== undefined));
  return element;
}

export function button(text: string, act: () => unknown, attributes: Attributes = {}): HTMLButtonElement {
  const element = el('button', { type: 'button', ...attributes }, text);
  element.addEventListener('click', () => void act());
  return element;
}

const spans = (all: readonly TextSpan[]): readonly Child[] =>
  all.map(({ isCode, text }) => (isCode ? el('code', {}, text) : text));

/** Returns a description as paragraphs and lists. */
export const prose = (text: string): readonly HTMLElement[] =>
  blocksOf(text).map(({ isList, items }) =>
    isList
      ? el('ul', {}, ...items.map((item) => el('li', {}, ...spans(item))))
      : el('p', {}, ...items.flatMap((item) => spans(item))),
  );

/** Returns a description as one line. */
export const phrase = (text: string): readonly Child[] =>
  blocksOf(text).flatMap(({ items }) => items.flatMap((item, at) => (at === 0 ? spans(item) : [' ', ...spans(item)])));

/** Returns a path that may wrap after each slash. */
export const pathText = (path: string): readonly Child[] => path.split(/(?<=\/)/).flatMap((part) => [part, el('wbr')]);

/** Returns a disclosure widget (`<details>`). The content is created when a user first opens the widget. */
export function folded(summary: readonly Child[], content: () => readonly Child[], isOpen = false): HTMLDetailsElement {
  const element = el('details', {}, el('summary', {}, ...summary));
  let isCreated = false;
  const create = (): void => {
    if (isCreated || !element.open) return;
    isCreated = true;
    element.append(...content().filter((child) => child !== undefined));
  };
  element.addEventListener('toggle', create);
  element.open = isOpen;
  create();
  return element;
}

let count = 0;

/** Returns an `id` that no other element has. */
export const unique = (word: string): string => `${word}-${(count += 1)}`;

/**
 * Colours every `pre.json` of the page with CSS Custom Highlights, which need no element per token. Browsers without
 * support show the text uncoloured.
 */
export function colorJSON(): void {
  if (!('highlights' in CSS)) return;
  const highlights = new Map(tokenKinds.map((kind) => [kind, new Highlight()]));
  for (const { firstChild: node } of document.querySelectorAll('pre.json'))
    for (const { kind, start, end } of tokensOf(node?.nodeValue ?? ''))
      if (node !== null)
        highlights
          .get(kind)
          ?.add(new StaticRange({ startContainer: node, startOffset: start, endContainer: node, endOffset: end }));
  for (const [kind, highlight] of highlights) CSS.highlights.set(`json-${kind}`, highlight);
}

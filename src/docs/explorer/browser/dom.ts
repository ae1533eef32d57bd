/** Elements. What is shown is text, never markup: there is no other way to put something in. */
import { blocksOf, type TextSpan } from './text.ts';

export type Child = Node | string | undefined;

type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** Of an attribute true is its presence; false and undefined are its absence. */
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

/** Paragraphs and lists. */
export const prose = (text: string): readonly HTMLElement[] =>
  blocksOf(text).map(({ isList, items }) =>
    isList
      ? el('ul', {}, ...items.map((item) => el('li', {}, ...spans(item))))
      : el('p', {}, ...items.flatMap((item) => spans(item))),
  );

/** The same within a line. */
export const phrase = (text: string): readonly Child[] =>
  blocksOf(text).flatMap(({ items }) => items.flatMap((item, at) => (at === 0 ? spans(item) : [' ', ...spans(item)])));

/** A path, which may be broken behind its slashes. */
export const pathText = (path: string): readonly Child[] => path.split(/(?<=\/)/).flatMap((part) => [part, el('wbr')]);

/** Its content is made when it is opened first. */
export function folded(summary: readonly Child[], content: () => readonly Child[], isOpen = false): HTMLDetailsElement {
  const element = el('details', {}, el('summary', {}, ...summary));
  let isMade = false;
  const make = (): void => {
    if (isMade || !element.open) return;
    isMade = true;
    element.append(...content().filter((child) => child !== undefined));
  };
  element.addEventListener('toggle', make);
  element.open = isOpen;
  make();
  return element;
}

let count = 0;

/** For `id`, which nothing else on the page has. */
export const unique = (word: string): string => `${word}-${(count += 1)}`;

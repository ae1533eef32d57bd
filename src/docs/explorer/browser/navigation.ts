import { el, pathText, type Child } from './dom.ts';
import type { ShownOperation, ShownTag } from './openapi.ts';

/** Maximum number of operations listed per tag. */
const maxListed = 150;

/** A search expands the tags if it finds at most this many operations. */
const maxUnfolded = 200;

/** Returns the path without its group and version, because the tag shows them. */
const shortened = (path: string): string => path.replace(/^\/k?apis\/[^/]+\/[^/]+(?=\/)/, '…');

const matches = ({ id, method, path, summary }: ShownOperation, words: readonly string[]): boolean => {
  const text = `${method} ${path} ${id} ${summary}`.toLowerCase();
  return words.every((word) => text.includes(word));
};

export const methodMark = (method: string): HTMLElement =>
  el('span', { class: `method ${method.toLowerCase()}` }, method);

/** Lists all operations by tag, with a search box. */
export class Navigation {
  readonly element: HTMLElement;
  readonly #filter: HTMLInputElement;
  readonly #found: HTMLElement;
  readonly #list: HTMLElement;
  readonly #opened = new Set<string>();
  #tags: readonly ShownTag[] = [];
  #byTag: ReadonlyMap<string, readonly ShownOperation[]> = new Map();
  #current = '';

  /** `below` is shown under the list. */
  constructor(below: Child) {
    this.#filter = el('input', { id: 'filter', type: 'search', autocomplete: 'off', spellcheck: 'false' });
    this.#found = el('p', { class: 'hint', role: 'status' });
    this.#list = el('div');
    this.#filter.addEventListener('input', () => this.#render());
    this.element = el(
      'nav',
      { id: 'operations', 'aria-label': 'Operations' },
      el('label', { for: 'filter' }, 'Find an operation'),
      this.#filter,
      this.#found,
      this.#list,
      below,
    );
  }

  show(tags: readonly ShownTag[], operations: readonly ShownOperation[]): void {
    this.#byTag = Map.groupBy(operations, ({ tag }) => tag);
    this.#tags = tags.filter(({ name }) => this.#byTag.has(name));
    this.#render();
  }

  /** Marks the operation that is shown. */
  mark(operation: ShownOperation | undefined): void {
    this.#current = operation?.id ?? '';
    if (operation !== undefined) this.#opened.add(operation.tag);
    this.#render();
  }

  #render(): void {
    const words = this.#filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.#tags
      .map((tag) => [tag, (this.#byTag.get(tag.name) ?? []).filter((one) => matches(one, words))] as const)
      .filter(([, operations]) => operations.length > 0);
    const total = found.reduce((sum, [, { length }]) => sum + length, 0);
    const isFew = words.length > 0 && total <= maxUnfolded;
    const sections = found.map(([tag, operations]) => [tag, this.#section(tag, operations, isFew)] as const);
    const others = sections.flatMap(([{ isOther }, section]) => (isOther ? [section] : []));
    this.#list.replaceChildren(
      ...sections.flatMap(([{ isOther }, section]) => (isOther ? [] : [section])),
      ...(others.length === 0 ? [] : [this.#group('Other', others)]),
    );
    this.#found.textContent = words.length === 0 ? '' : total === 1 ? '1 operation found' : `${total} operations found`;
  }

  /** Groups sections that few readers need. The group is collapsed unless one of its sections is open. */
  #group(name: string, sections: readonly HTMLDetailsElement[]): HTMLElement {
    const group = el('details', {}, el('summary', {}, name), ...sections);
    group.open = sections.some(({ open }) => open);
    return group;
  }

  #section(
    { name, description }: ShownTag,
    operations: readonly ShownOperation[],
    isFound: boolean,
  ): HTMLDetailsElement {
    const list = el('ul');
    const fill = (): void => {
      if (list.childElementCount > 0) return;
      list.append(...operations.slice(0, maxListed).map((one) => this.#item(one)));
      const left = operations.length - maxListed;
      if (left > 0) list.append(el('li', { class: 'hint' }, `${left} more: use the search box`));
    };
    const count = el('span', { class: 'hint' }, ` ${operations.length}`);
    const about = el('span', { class: 'summary' }, description);
    const section = el('details', {}, el('summary', {}, name, count, about), list);
    section.open = isFound || this.#opened.has(name);
    if (section.open) fill();
    section.addEventListener('toggle', () => {
      if (section.open) fill();
      if (isFound) return;
      if (section.open) this.#opened.add(name);
      else this.#opened.delete(name);
    });
    return section;
  }

  #item({ id, method, path, summary, isDeprecated }: ShownOperation): HTMLElement {
    const link = el(
      'a',
      { href: `#${encodeURIComponent(id)}`, 'aria-current': id === this.#current ? 'page' : undefined },
      methodMark(method),
      ' ',
      el(isDeprecated ? 'del' : 'span', { class: 'path' }, ...pathText(shortened(path))),
      el('span', { class: 'summary' }, summary),
    );
    return el('li', {}, link);
  }
}

import { el, unique } from './dom.ts';
import type { HTTPRequest } from './request.ts';
import { codeSamples, type CodeSample } from './samples.ts';

/** Index of the selected language. All operations share the selection. */
let language = 0;

/** Shows a request as a program. */
export class SampleView {
  /** Control that selects the language. */
  readonly choice: HTMLElement;
  readonly element: HTMLElement;
  readonly #select = el(
    'select',
    { id: unique('language') },
    ...codeSamples.map((one) => el('option', {}, one.language)),
  );
  readonly #program = el('pre', { tabindex: 0, role: 'region', 'aria-label': 'Code sample' });
  readonly #trust = el('code');

  constructor() {
    this.#select.selectedIndex = language;
    this.choice = el('div', {}, el('label', { for: this.#select.id }, 'Language of the code sample'), this.#select);
    const hint = el(
      'p',
      { class: 'hint' },
      'If the certificate is not trusted, add ',
      this.#trust,
      ' with ',
      el('code', {}, 'ca.crt'),
      ' of the ConfigMap ',
      el('code', {}, 'platform-apiserver-ca'),
      '.',
    );
    this.element = el('div', {}, this.#program, hint);
  }

  /** Shows a code sample, or a text that explains why there is none. `origin`: without a trailing slash. */
  show(request: HTTPRequest | string, origin: string): void {
    language = this.#select.selectedIndex;
    const { write, trust } = codeSamples[language] as CodeSample;
    this.#program.textContent = typeof request === 'string' ? request : write(request, origin);
    this.#trust.textContent = trust;
  }

  async copy(button: HTMLButtonElement): Promise<void> {
    try {
      await navigator.clipboard.writeText(this.#program.textContent);
      button.textContent = 'Copied';
    } catch {
      // Browsers provide no clipboard over plain HTTP.
      getSelection()?.selectAllChildren(this.#program);
      button.textContent = 'Selected: press Ctrl+C';
    }
    setTimeout(() => (button.textContent = 'Copy'), 2_000);
  }
}

import { colorJSON, el, folded } from './dom.ts';
import { Indenter, isJSON } from './json.ts';
import { messageOf } from './login.ts';
import type { ShownOperation } from './openapi.ts';
import { durationOf, Excerpt, sizeOf } from './text.ts';

/** Maximum number of characters shown of a response, and of a stream. */
const maxCharacters = 200_000;
const maxStreamCharacters = 50_000;
/** A stream view that is scrolled to within this many pixels of its end follows new text. */
const nearEnd = 40;
/** Milliseconds between updates of the view. */
const interval = 100;

/** Shows the response to one request while it arrives. */
export class ResponseView {
  readonly element: HTMLElement;
  readonly #operation: ShownOperation;
  readonly #status = el('p', { role: 'status', class: 'status' });
  readonly #rest = el('div');
  /** Signal of the request that is shown; an earlier request may not have finished yet. */
  #current: AbortSignal | undefined;

  constructor(operation: ShownOperation) {
    this.#operation = operation;
    this.element = el('section', { 'aria-label': 'Response', class: 'response' }, this.#status, this.#rest);
  }

  /**
   * Shows the response to `send` until the response ends or `signal` is aborted. Resolves with the response, if any.
   */
  async follow(
    send: () => Promise<Response>,
    { signal, isStream }: { readonly signal: AbortSignal; readonly isStream: boolean },
  ): Promise<Response | undefined> {
    this.#current = signal;
    this.#rest.replaceChildren();
    const report = (text: string, isProblem = false): void => {
      if (this.#current !== signal) return;
      this.#status.textContent = text;
      this.#status.className = isProblem ? 'status problem' : 'status';
    };
    report('Sending…');
    const start = performance.now();
    const elapsed = (): string => durationOf(performance.now() - start);
    const body = new BodyView(isStream);
    let response: Response | undefined;
    let head = '';
    try {
      response = await send();
      if (response.type === 'opaqueredirect') {
        report('The response is a redirect. Browsers hide its target from scripts: open the URL in a new tab.');
        return response;
      }
      head = this.#headOf(response);
      this.#show(response, body);
      if (isStream) report(`${head} Streaming…`, !response.ok);
      await body.read(response);
      report(`${head} ${body.size} in ${elapsed()}.`, !response.ok);
    } catch (error) {
      if (signal.aborted) report(`${head} Stopped after ${elapsed()}, ${body.size}.`.trim());
      else if (response === undefined) report(`No response: ${reasonOf(error)}`, true);
      else report(`${head} The connection was lost after ${elapsed()}, ${body.size}.`, true);
    } finally {
      body.end();
    }
    return response;
  }

  #headOf({ status }: Response): string {
    const { description = '' } = this.#operation.responses.find((one) => one.status === String(status)) ?? {};
    // The first sentence is enough here, because the list of responses shows the whole description.
    const [first = ''] = description.split(/\.\s/);
    return first === '' ? `${status}.` : `${status}: ${first}.`;
  }

  #show(response: Response, body: BodyView): void {
    const lines = [...response.headers].map(([name, value]) => `${name}: ${value}`);
    this.#rest.replaceChildren(
      folded([`Headers ${lines.length}`], () => [el('pre', {}, lines.join('\n'))]),
      body.element,
    );
  }
}

class BodyView {
  readonly element: HTMLElement;
  readonly #note = el('p', { class: 'hint' });
  readonly #text = el('pre', { tabindex: 0, role: 'region', 'aria-label': 'Response body' });
  readonly #excerpt: Excerpt;
  readonly #isStream: boolean;
  #bytes = 0;
  #timer: number | undefined;

  constructor(isStream: boolean) {
    this.#isStream = isStream;
    this.#excerpt = isStream ? new Excerpt(maxStreamCharacters, 'end') : new Excerpt(maxCharacters, 'beginning');
    this.element = el('div', {}, this.#note, this.#text);
  }

  get size(): string {
    return sizeOf(this.#bytes);
  }

  async read({ body, headers }: Response): Promise<void> {
    if (isJSON(headers.get('content-type') ?? '')) this.#text.className = 'json';
    const indenter = this.#text.className === 'json' && !this.#isStream ? new Indenter() : undefined;
    const decoder = new TextDecoder();
    const reader = body?.getReader();
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
      this.#bytes += part.value.length;
      this.#timer ??= setTimeout(() => this.#render(), interval);
      // Once the excerpt is full, only the size of the response is updated.
      if (this.#excerpt.isCut && !this.#isStream) continue;
      const text = decoder.decode(part.value, { stream: true });
      this.#excerpt.add(indenter === undefined ? text : indenter.add(text));
    }
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#render();
  }

  #render(): void {
    this.#timer = undefined;
    const { scrollTop, scrollHeight, clientHeight } = this.#text;
    // A user who has scrolled back keeps their position.
    const isFollowed = this.#isStream && scrollHeight - scrollTop - clientHeight < nearEnd;
    this.#text.textContent = this.#excerpt.text;
    colorJSON();
    this.#text.hidden = this.#bytes === 0;
    if (isFollowed) this.#text.scrollTop = this.#text.scrollHeight;
    const shown = this.#isStream ? 'last' : 'first';
    this.#note.textContent = this.#excerpt.isCut ? `Showing only the ${shown} part of ${this.size}.` : '';
  }
}

/** Returns the reason of a failed request; browsers report no details. */
const reasonOf = (error: unknown): string =>
  error instanceof TypeError
    ? `the server cannot be reached, or the request cannot be sent (${messageOf(error)}).`
    : messageOf(error);

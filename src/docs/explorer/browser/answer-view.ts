import { el, folded } from './dom.ts';
import { messageOf } from './login.ts';
import type { ShownOperation } from './openapi.ts';
import { Excerpt, Indenter, sizeOf } from './text.ts';

/** Characters of an answer that are shown. */
const longest = 200_000;
/** Of one that goes on, of its end. */
const longestEnd = 50_000;
/** Pixels from the end in which somebody still follows it. */
const nearEnd = 40;
/** What comes is shown so often. Milliseconds. */
const interval = 100;

/** The answer to one request, as it comes. */
export class AnswerView {
  readonly element: HTMLElement;
  readonly #operation: ShownOperation;
  readonly #status = el('p', { role: 'status', class: 'status' });
  readonly #rest = el('div');
  /** Of what is shown: another one may still be on its way to its end. */
  #current: AbortSignal | undefined;

  constructor(operation: ShownOperation) {
    this.#operation = operation;
    this.element = el('section', { 'aria-label': 'Answer', class: 'answer' }, this.#status, this.#rest);
  }

  /** Shows what `ask` brings until its end, or until `signal` is aborted. Resolves with the head of the answer, if one came. */
  async follow(
    ask: () => Promise<Response>,
    { signal, isStream }: { readonly signal: AbortSignal; readonly isStream: boolean },
  ): Promise<Response | undefined> {
    this.#current = signal;
    this.#rest.replaceChildren();
    const say = (text: string, isProblem = false): void => {
      if (this.#current === signal) this.#say(text, isProblem);
    };
    say('Asked…');
    const begin = performance.now();
    const body = new BodyView(isStream);
    let answer: Response | undefined;
    let head = '';
    try {
      answer = await ask();
      if (answer.type === 'opaqueredirect') {
        say('A redirect. Browsers tell pages not where to: open the address itself.');
        return answer;
      }
      head = this.#headOf(answer);
      this.#show(answer, body);
      if (isStream) say(`${head} It goes on.`, !answer.ok);
      await body.read(answer);
      say(`${head} ${body.size} in ${elapsed(begin)}.`, !answer.ok);
    } catch (error) {
      if (signal.aborted) say(`${head} Stopped after ${elapsed(begin)}, ${body.size}.`.trim());
      else if (answer === undefined) say(`No answer: ${reasonOf(error)}`, true);
      else say(`${head} The connection broke after ${elapsed(begin)}, ${body.size}.`, true);
    } finally {
      body.end();
    }
    return answer;
  }

  #say(text: string, isProblem: boolean): void {
    this.#status.textContent = text;
    this.#status.className = isProblem ? 'status problem' : 'status';
  }

  #headOf({ status }: Response): string {
    const { description = '' } = this.#operation.answers.find((one) => one.status === String(status)) ?? {};
    // Its first sentence: what more there is to know stands below.
    const [first = ''] = description.split(/\.\s/);
    return first === '' ? `${status}.` : `${status}: ${first}.`;
  }

  #show(answer: Response, body: BodyView): void {
    const lines = [...answer.headers].map(([name, value]) => `${name}: ${value}`);
    this.#rest.replaceChildren(
      folded([`Headers ${lines.length}`], () => [el('pre', {}, lines.join('\n'))]),
      body.element,
    );
  }
}

class BodyView {
  readonly element: HTMLElement;
  readonly #note = el('p', { class: 'hint' });
  readonly #text = el('pre', { tabindex: 0, role: 'region', 'aria-label': 'Body of the answer' });
  readonly #excerpt: Excerpt;
  readonly #isStream: boolean;
  #bytes = 0;
  #timer: number | undefined;

  constructor(isStream: boolean) {
    this.#isStream = isStream;
    this.#excerpt = isStream ? new Excerpt(longestEnd, 'end') : new Excerpt(longest, 'beginning');
    this.element = el('div', {}, this.#note, this.#text);
  }

  get size(): string {
    return sizeOf(this.#bytes);
  }

  async read({ body, headers }: Response): Promise<void> {
    const isJSON = /[/+]json(?:;|$)/.test(headers.get('content-type') ?? '');
    const indenter = isJSON && !this.#isStream ? new Indenter() : undefined;
    const decoder = new TextDecoder();
    const reader = body?.getReader();
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
      this.#bytes += part.value.length;
      this.#timer ??= setTimeout(() => this.#render(), interval);
      // What is not shown is only counted.
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
    // Whoever has gone back to read something stays there.
    const isFollowed = this.#isStream && scrollHeight - scrollTop - clientHeight < nearEnd;
    this.#text.textContent = this.#excerpt.text;
    this.#text.hidden = this.#bytes === 0;
    if (isFollowed) this.#text.scrollTop = this.#text.scrollHeight;
    this.#note.textContent = !this.#excerpt.isCut
      ? ''
      : this.#isStream
        ? `Only the end of ${this.size} is shown.`
        : `Only the beginning of ${this.size} is shown.`;
  }
}

const elapsed = (begin: number): string => `${Math.round(performance.now() - begin)} ms`;

/** Browsers say no more of why than this. */
const reasonOf = (error: unknown): string =>
  error instanceof TypeError
    ? `the server cannot be reached, or what was asked cannot be sent (${messageOf(error)}).`
    : messageOf(error);

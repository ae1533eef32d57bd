import { AnswerView } from './answer-view.ts';
import { bodyEditor } from './body-editor.ts';
import { control } from './control.ts';
import { button, el, folded, pathText, phrase, unique, type Child } from './dom.ts';
import { messageOf, type ExplorerLogin } from './login.ts';
import { methodMark } from './navigation.ts';
import type { ShownResponse, ShownOperation, ShownParameter, SchemaReader } from './openapi.ts';
import { bytesOf, curlOf, requestOf, Unsendable, type HTTPRequest } from './request.ts';
import { fieldLine, schemaLine, schemaTree } from './schema-view.ts';

export interface OperationViewContext {
  readonly login: ExplorerLogin;
  /** Ends with a slash. */
  readonly base: URL;
  /** Tells whoever looks at the page something that is not about this operation alone. */
  readonly tell: (problem: string) => void;
}

/** Parameters. */
const mostOpen = 8;
/** Those with which people begin, where there are more. */
const first = new Set([
  // Of the logs.
  'operation',
  'namespaces',
  'pods',
  'log_query',
  'start_time',
  'end_time',
  'size',
  'follow',
  // Of lists.
  'page',
  'limit',
  'sortBy',
  'ascending',
  'name',
  'labelSelector',
  'fieldSelector',
  'fields',
  'watch',
]);

const shows: Readonly<Record<ShownOperation['shows'], string>> = {
  token: 'Whoever asks shows a token.',
  client: 'A client shows its secret; a public one has none.',
  nothing: 'Open to everybody.',
};

/** What an operation is, and a form to try it. */
export class OperationView {
  readonly element: HTMLElement;
  readonly heading: HTMLElement;
  readonly #operation: ShownOperation;
  readonly #around: OperationViewContext;
  readonly #answer: AnswerView;
  readonly #curl = el('pre', { tabindex: 0, role: 'region', 'aria-label': 'The request as curl sends it' });
  readonly #problem = el('p', { class: 'problem', role: 'alert', id: unique('problem') });
  readonly #token: HTMLInputElement;
  readonly #tokenHint = el('p', { class: 'hint', id: unique('hint') });
  readonly #accept: HTMLSelectElement;
  readonly #stop: HTMLButtonElement;
  readonly #parameters: readonly ReturnType<typeof control>[];
  readonly #body: ReturnType<typeof bodyEditor> | undefined;
  #underWay: AbortController | undefined;

  constructor(operation: ShownOperation, around: OperationViewContext) {
    const { id, method, path, summary, parameters, body, answers, isDeprecated, schemas } = operation;
    this.#operation = operation;
    this.#around = around;
    this.#answer = new AnswerView(operation);
    this.#parameters = parameters.map(({ name, in: place, description, required, schema }) =>
      control({
        name,
        place,
        schema: schemas.resolve(schema),
        isRequired: required,
        about: [...phrase(description), ' ', ...fieldLine(schema, schemas)],
      }),
    );
    this.#body = body === undefined ? undefined : bodyEditor(body, schemas);
    this.#token = el('input', { type: 'checkbox', id: unique('token'), 'aria-describedby': this.#tokenHint.id });
    const contents = answers.filter(({ status }) => status < '3').flatMap((one) => one.content);
    const types = [...new Set(contents.map(({ type }) => type))];
    // Which of them an export is, and which a query, whoever asks need not know.
    const offered = types.length > 1 && types.includes('text/plain') ? ['*/*', ...types] : [...types, '*/*'];
    this.#accept = el('select', { id: unique('accept') }, ...offered.map((type) => el('option', {}, type)));
    this.#stop = button('Stop', () => this.stop(), { disabled: true, class: 'second' });
    this.heading = el('h2', { tabindex: -1 }, summary);
    this.element = el(
      'article',
      {},
      this.heading,
      el('p', { class: 'line' }, methodMark(method), ' ', el('code', {}, ...pathText(path))),
      el(
        'p',
        { class: 'hint' },
        isDeprecated ? el('strong', {}, 'Removed or deprecated. ') : undefined,
        `${shows[operation.shows]} `,
        el('a', { href: `#${encodeURIComponent(id)}` }, id),
      ),
      this.#form(),
      this.#answer.element,
      el('section', {}, el('h3', {}, 'Answers'), ...answers.map((one) => answerPart(one, schemas))),
    );
    this.loginChanged();
  }

  /** Ends what is under way. */
  stop(): void {
    this.#underWay?.abort();
  }

  loginChanged(): void {
    const { isLoggedIn } = this.#around.login;
    this.#token.disabled = !isLoggedIn;
    this.#token.checked = isLoggedIn && this.#operation.shows === 'token';
    this.#tokenHint.textContent = isLoggedIn ? '' : 'Log in, or use a token, at the top of the page.';
    this.#preview();
  }

  #form(): HTMLFormElement {
    const row = el(
      'div',
      { class: 'fields' },
      el('div', {}, el('label', { for: this.#accept.id }, 'Media type of the answer'), this.#accept),
      el(
        'div',
        {},
        el('div', { class: 'check' }, this.#token, el('label', { for: this.#token.id }, 'Send the token')),
        this.#tokenHint,
      ),
    );
    const copy = button('Copy', () => this.#copy(copy), { class: 'second' });
    const form = el(
      'form',
      { novalidate: true, 'aria-label': 'Try it' },
      ...this.#fields(),
      this.#body?.element,
      el('h3', {}, 'Request'),
      row,
      this.#curl,
      el(
        'p',
        { class: 'hint' },
        'Where curl does not know who issued the certificate: ',
        el('code', {}, '--cacert FILE'),
        ', with ',
        el('code', {}, 'ca.crt'),
        ' of the ConfigMap ',
        el('code', {}, 'platform-apiserver-ca'),
        '.',
      ),
      this.#problem,
      el('div', { class: 'buttons' }, el('button', {}, 'Send'), this.#stop, copy),
    );
    form.addEventListener('input', () => this.#preview());
    form.addEventListener('change', () => this.#preview());
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#send();
    });
    return form;
  }

  /** Those that need not be filled in are folded away where they are many, but for the first ones. */
  #fields(): readonly HTMLElement[] {
    const { parameters } = this.#operation;
    if (parameters.length === 0) return [];
    const optional = parameters.filter(({ required }) => !required);
    const rest = optional.length > mostOpen ? optional.filter(({ name }) => !first.has(name)) : [];
    const elements = (of: readonly ShownParameter[]): readonly HTMLElement[] =>
      of.flatMap((one) => this.#parameters[parameters.indexOf(one)]?.element ?? []);
    const fields = (of: readonly ShownParameter[]): readonly HTMLElement[] =>
      of.length === 0 ? [] : [el('div', { class: 'fields' }, ...elements(of))];
    const summary = `${rest.length} ${rest.length === optional.length ? 'optional' : 'more'} parameters`;
    return [
      el('h3', {}, 'Parameters'),
      ...fields(parameters.filter(({ required }) => required)),
      ...fields(optional.filter((one) => !rest.includes(one))),
      ...(rest.length === 0 ? [] : [el('details', {}, el('summary', {}, summary), ...fields(rest))]),
    ];
  }

  /** Throws Unsendable. */
  #request(): HTTPRequest {
    return requestOf(this.#operation, {
      parameters: this.#parameters.map(({ input }) => input.value),
      accept: this.#accept.value,
      body: this.#body?.read(),
      withToken: this.#token.checked,
    });
  }

  /** Undefined if it cannot be sent, of which people are told. */
  #sendable(): HTTPRequest | undefined {
    this.#clear();
    try {
      return this.#request();
    } catch (error) {
      this.#problem.textContent = messageOf(error);
      const input = error instanceof Unsendable ? this.#parameters[error.index]?.input : undefined;
      input?.setAttribute('aria-invalid', 'true');
      input?.focus();
      return undefined;
    }
  }

  #preview(): void {
    try {
      this.#curl.textContent = curlOf(this.#request(), this.#around.base.href.slice(0, -1));
      this.#clear();
    } catch (error) {
      this.#curl.textContent = messageOf(error);
    }
  }

  #clear(): void {
    this.#problem.textContent = '';
    for (const { input } of this.#parameters) input.removeAttribute('aria-invalid');
  }

  async #copy(copy: HTMLButtonElement): Promise<void> {
    if (this.#sendable() === undefined) return;
    try {
      await navigator.clipboard.writeText(this.#curl.textContent);
      copy.textContent = 'Copied';
    } catch {
      // There is no clipboard over plain HTTP.
      getSelection()?.selectAllChildren(this.#curl);
      copy.textContent = 'Selected: copy it';
    }
    setTimeout(() => (copy.textContent = 'Copy'), 2_000);
  }

  async #send(): Promise<void> {
    this.stop();
    const request = this.#sendable();
    if (request === undefined) return;
    const underWay = new AbortController();
    const { signal } = underWay;
    this.#underWay = underWay;
    this.#stop.disabled = false;
    const { isStream, withToken } = request;
    const answer = await this.#answer.follow(() => this.#ask(request, signal), { signal, isStream });
    if (this.#underWay === underWay) {
      if (document.activeElement === this.#stop) this.heading.focus({ preventScroll: true });
      this.#stop.disabled = true;
    }
    const challenge = answer?.headers.get('www-authenticate') ?? '';
    if (withToken && answer?.status === 401 && challenge.includes('invalid_token')) {
      this.#around.login.forget();
      this.#around.tell('The server takes this token no longer: log in again.');
    }
  }

  async #ask({ method, path, headers, body, withToken }: HTTPRequest, signal: AbortSignal): Promise<Response> {
    const token = withToken ? await this.#around.login.token() : undefined;
    return fetch(`${this.#around.base.href.slice(0, -1)}${path}`, {
      method,
      headers: [
        ...headers.map(([name, value]): [string, string] => [name, value]),
        ...(token === undefined ? [] : [['Authorization', `Bearer ${token}`] as [string, string]]),
      ],
      ...(body === undefined ? {} : { body: bytesOf(body) }),
      signal,
      // The token alone says who asks, and where an answer leads is shown, not followed.
      credentials: 'omit',
      redirect: 'manual',
      cache: 'no-store',
    });
  }
}

function answerPart({ status, description, headers, content }: ShownResponse, schemas: SchemaReader): HTMLElement {
  return folded([el('strong', {}, status), ` ${description}`], () => [
    ...(headers.length === 0
      ? []
      : [
          el(
            'ul',
            { class: 'schema' },
            ...headers.map(([name, what]) => el('li', {}, el('code', {}, name), ' ', ...phrase(what))),
          ),
        ]),
    ...content.flatMap(({ type, schema }): readonly Child[] => [
      el('p', {}, el('code', {}, type), ' ', ...schemaLine(schema, schemas)),
      ...schemaTree(schema, schemas),
    ]),
    ...(headers.length === 0 && content.length === 0 ? [el('p', { class: 'hint' }, 'No body.')] : []),
  ]);
}

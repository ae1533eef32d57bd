import { bodyEditor } from './body-editor.ts';
import { control } from './control.ts';
import { button, el, folded, pathText, phrase, prose, unique, type Child } from './dom.ts';
import { messageOf, type ExplorerLogin } from './login.ts';
import { methodMark } from './navigation.ts';
import type { ShownResponse, ShownOperation, ShownParameter, SchemaReader } from './openapi.ts';
import { bytesOf, requestOf, Unsendable, type HTTPRequest } from './request.ts';
import { ResponseView } from './response-view.ts';
import { SampleView } from './sample-view.ts';
import { exampleBlocks, exampleText, fieldLine, schemaLine, schemaTree } from './schema-view.ts';

export interface OperationViewContext {
  readonly login: ExplorerLogin;
  /** Base URL of the server; ends with a slash. */
  readonly base: URL;
  /** Shows a problem that concerns the whole page. */
  readonly report: (problem: string) => void;
}

/** If an operation has more optional parameters than this number, the less common ones are collapsed. */
const maxUnfolded = 8;
/** Names of the parameters that are never collapsed. */
const common = new Set([
  // Parameters of log queries.
  'operation',
  'namespaces',
  'pods',
  'log_query',
  'start_time',
  'end_time',
  'size',
  'follow',
  // Parameters of lists.
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

const credentialsText: Readonly<Record<ShownOperation['credentials'], string>> = {
  token: 'Requires an access token.',
  client: 'Requires client authentication; public clients send only their client ID.',
  none: 'Requires no authentication.',
};

/** Shows an operation, and a form to try it. */
export class OperationView {
  readonly element: HTMLElement;
  readonly heading: HTMLElement;
  readonly #operation: ShownOperation;
  readonly #context: OperationViewContext;
  readonly #response: ResponseView;
  readonly #sample = new SampleView();
  readonly #problem = el('p', { class: 'problem', role: 'alert', id: unique('problem') });
  readonly #token: HTMLInputElement;
  readonly #tokenHint = el('p', { class: 'hint', id: unique('hint') });
  readonly #accept: HTMLSelectElement;
  readonly #stop: HTMLButtonElement;
  readonly #parameters: readonly ReturnType<typeof control>[];
  readonly #body: ReturnType<typeof bodyEditor> | undefined;
  #sending: AbortController | undefined;

  constructor(operation: ShownOperation, context: OperationViewContext) {
    const { id, method, path, summary, description, parameters, body, responses, isDeprecated, schemas } = operation;
    this.#operation = operation;
    this.#context = context;
    this.#response = new ResponseView(operation);
    this.#parameters = parameters.map((one) => parameterControl(one, schemas));
    this.#body = body === undefined ? undefined : bodyEditor(body, schemas);
    this.#token = el('input', { type: 'checkbox', id: unique('token'), 'aria-describedby': this.#tokenHint.id });
    const contents = responses.filter(({ status }) => status < '3').flatMap((one) => one.content);
    const types = [...new Set(contents.map(({ type }) => type))];
    // For logs, the server returns text for an export and JSON for a query.
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
        `${credentialsText[operation.credentials]} `,
        el('a', { href: `#${encodeURIComponent(id)}` }, id),
      ),
      ...prose(description),
      this.#form(),
      this.#response.element,
      el('section', {}, el('h3', {}, 'Responses'), ...responses.map((one) => responsePart(one, schemas))),
    );
    this.loginChanged();
  }

  /** Aborts the request. */
  stop(): void {
    this.#sending?.abort();
  }

  loginChanged(): void {
    const { isLoggedIn } = this.#context.login;
    this.#token.disabled = !isLoggedIn;
    this.#token.checked = isLoggedIn && this.#operation.credentials === 'token';
    this.#tokenHint.textContent = isLoggedIn ? '' : 'Log in or paste an access token at the top of the page.';
    this.#preview();
  }

  #form(): HTMLFormElement {
    const row = el(
      'div',
      { class: 'fields' },
      el('div', {}, el('label', { for: this.#accept.id }, 'Response media type'), this.#accept),
      el(
        'div',
        {},
        el('div', { class: 'check' }, this.#token, el('label', { for: this.#token.id }, 'Send the access token')),
        this.#tokenHint,
      ),
      this.#sample.choice,
    );
    const copy = button('Copy', () => this.#copy(copy), { class: 'second' });
    const form = el(
      'form',
      { novalidate: true, 'aria-label': 'Try it' },
      ...this.#fields(),
      this.#body?.element,
      el('h3', {}, 'Request'),
      row,
      this.#sample.element,
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

  /**
   * Returns the inputs of the parameters. If there are many optional parameters, all except the most common ones are
   * collapsed.
   */
  #fields(): readonly HTMLElement[] {
    const { parameters } = this.#operation;
    if (parameters.length === 0) return [];
    const optional = parameters.filter(({ required }) => !required);
    const rest = optional.length > maxUnfolded ? optional.filter(({ name }) => !common.has(name)) : [];
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

  /** Returns the request that the form describes. Throws Unsendable. */
  #request(): HTTPRequest {
    return requestOf(this.#operation, {
      parameters: this.#parameters.map(({ input }) => input.value),
      accept: this.#accept.value,
      body: this.#body?.read(),
      withToken: this.#token.checked,
    });
  }

  /** Returns the request, or shows the problem and returns undefined. */
  #validRequest(): HTTPRequest | undefined {
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

  get #origin(): string {
    return this.#context.base.href.slice(0, -1);
  }

  #preview(): void {
    try {
      this.#sample.show(this.#request(), this.#origin);
      this.#clear();
    } catch (error) {
      this.#sample.show(messageOf(error), this.#origin);
    }
  }

  #clear(): void {
    this.#problem.textContent = '';
    for (const { input } of this.#parameters) input.removeAttribute('aria-invalid');
  }

  async #copy(copy: HTMLButtonElement): Promise<void> {
    if (this.#validRequest() !== undefined) await this.#sample.copy(copy);
  }

  async #send(): Promise<void> {
    this.stop();
    const request = this.#validRequest();
    if (request === undefined) return;
    const sending = new AbortController();
    const { signal } = sending;
    this.#sending = sending;
    this.#stop.disabled = false;
    const { isStream, withToken } = request;
    const response = await this.#response.follow(() => this.#fetch(request, signal), { signal, isStream });
    if (this.#sending === sending) {
      if (document.activeElement === this.#stop) this.heading.focus({ preventScroll: true });
      this.#stop.disabled = true;
    }
    const challenge = response?.headers.get('www-authenticate') ?? '';
    if (withToken && response?.status === 401 && challenge.includes('invalid_token')) {
      this.#context.login.forget();
      this.#context.report('The server no longer accepts this token. Log in again.');
    }
  }

  async #fetch({ method, path, headers, body, withToken }: HTTPRequest, signal: AbortSignal): Promise<Response> {
    const token = withToken ? await this.#context.login.token() : undefined;
    return fetch(`${this.#origin}${path}`, {
      method,
      headers: [
        ...headers.map(([name, value]): [string, string] => [name, value]),
        ...(token === undefined ? [] : [['Authorization', `Bearer ${token}`] as [string, string]]),
      ],
      ...(body === undefined ? {} : { body: bytesOf(body) }),
      signal,
      // Cookies are not sent, because the token is the only credential. Redirects are reported, not followed.
      credentials: 'omit',
      redirect: 'manual',
      cache: 'no-store',
    });
  }
}

function responsePart({ status, description, headers, content }: ShownResponse, schemas: SchemaReader): HTMLElement {
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
    ...content.flatMap((one): readonly Child[] => [
      el('p', {}, el('code', {}, one.type), ' ', ...schemaLine(one.schema, schemas)),
      ...exampleBlocks(one),
      ...schemaTree(one.schema, schemas),
    ]),
    ...(headers.length === 0 && content.length === 0 ? [el('p', { class: 'hint' }, 'No body')] : []),
  ]);
}

function parameterControl(parameter: ShownParameter, schemas: SchemaReader): ReturnType<typeof control> {
  const { name, in: location, description, required: isRequired, schema, examples } = parameter;
  const about = [
    ...phrase(description),
    ' ',
    ...fieldLine(schema, schemas),
    ...examples.flatMap(({ value }) => [' Example: ', el('code', {}, exampleText(value, ''))]),
  ];
  return control({ name, location, schema: schemas.resolve(schema), isRequired, about });
}

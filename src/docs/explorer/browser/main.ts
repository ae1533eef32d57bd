/** The page: an operation at a time beside the list of all, which is where the hash says. */
import { AccountPanel } from './account.ts';
import { button, el, prose } from './dom.ts';
import { ExplorerLogin, messageOf, type Site } from './login.ts';
import { Navigation } from './navigation.ts';
import { read, textOf, type ShownDescription, type ShownOperation } from './openapi.ts';
import { OperationView } from './operation-view.ts';

const ownDocument = 'swagger/platform.v3.json';
const customDocument = 'swagger/custom-resources.v3.json';
const showCustom = 'Show the custom resources of the cluster too';

class Docs {
  readonly #site: Site;
  readonly #login: ExplorerLogin;
  readonly #account: AccountPanel;
  readonly #navigation: Navigation;
  /** Problems are said at once, everything else when the reader of a screen has a moment. */
  readonly #problem = el('p', { class: 'problem', role: 'alert' });
  readonly #status = el('p', { role: 'status' });
  readonly #main = el('main', { tabindex: -1 });
  readonly #custom: HTMLButtonElement;
  #own: ShownDescription | undefined;
  #ofCluster: ShownDescription | undefined;
  /** Also after another login. */
  #wantsCustom = false;
  #operations: ReadonlyMap<string, ShownOperation> = new Map();
  #view: OperationView | undefined;

  constructor(site: Site) {
    this.#site = site;
    this.#login = new ExplorerLogin(site, () => this.#loginChanged());
    const tell = (text: string, isProblem: boolean, ...more: readonly Node[]): void =>
      this.#tell(text, isProblem, ...more);
    this.#account = new AccountPanel({
      site,
      login: this.#login,
      logIn: () => this.#login.begin(location.hash, this.#wantsCustom),
      logOut: () => this.#logOut(),
      tell,
    });
    this.#custom = button(showCustom, () => this.#showCustom(), { class: 'second' });
    this.#navigation = new Navigation(this.#custom);
  }

  async start(): Promise<void> {
    const toggle = button(
      'Operations',
      () => toggle.setAttribute('aria-expanded', String(this.#navigation.element.classList.toggle('open'))),
      { class: 'second toggle', 'aria-expanded': 'false', 'aria-controls': 'operations' },
    );
    const title = el('h1', {}, el('a', { href: '#' }, document.title));
    document.body.replaceChildren(
      button('Skip to what is shown', () => this.#main.focus(), { class: 'skip' }),
      el('header', {}, title, toggle, this.#account.element),
      el('div', { class: 'notice' }, this.#problem, this.#status),
      el('div', { class: 'columns' }, this.#navigation.element, this.#main),
    );
    this.#navigation.element.addEventListener('click', (event) => {
      if (!(event.target instanceof Element) || event.target.closest('a') === null) return;
      this.#navigation.element.classList.remove('open');
      toggle.setAttribute('aria-expanded', 'false');
    });
    addEventListener('hashchange', () => {
      this.#show();
      (this.#view?.heading ?? this.#main).focus({ preventScroll: true });
      scrollTo(0, 0);
      this.#account.followHash();
    });
    const [withCustom] = await Promise.all([this.#comeBack(), this.#load()]);
    if (withCustom) await this.#showCustom();
  }

  /** From the login page, if that is where the browser was. Resolves with whether custom resources were shown before. */
  async #comeBack(): Promise<boolean> {
    if (!location.pathname.endsWith('/docs/callback')) return false;
    const query = new URLSearchParams(location.search);
    const page = new URL('docs', this.#site.base).href;
    // The code is good once, and is nobody's to find in the history.
    history.replaceState(null, '', page);
    if (query.size === 0) return false;
    try {
      const { hash, withCustomResources } = await this.#login.finish(query);
      history.replaceState(null, '', `${page}${hash}`);
      this.#show();
      return withCustomResources;
    } catch (error) {
      this.#tell(messageOf(error), true);
      return false;
    }
  }

  async #load(): Promise<void> {
    try {
      this.#own = await this.#fetch(ownDocument);
    } catch (error) {
      this.#main.replaceChildren(
        el('p', { class: 'problem', role: 'alert' }, `The descriptions cannot be read: ${messageOf(error)}`),
        button('Try again', () => this.#load()),
      );
      return;
    }
    this.#list();
  }

  async #showCustom(): Promise<void> {
    if (!this.#login.isLoggedIn)
      return this.#tell('Log in first: the custom resources of the cluster are described to whom it knows.', true);
    this.#wantsCustom = true;
    this.#tell('Reading the custom resources of the cluster…', false);
    try {
      const description = await this.#fetch(customDocument, await this.#login.token());
      // Whoever has logged out meanwhile is shown nothing more.
      if (!this.#login.isLoggedIn) return;
      this.#ofCluster = description;
      this.#custom.textContent = 'Read the custom resources again';
      this.#list();
      const { length } = this.#ofCluster.operations;
      this.#tell(`${length} operations of custom resources are listed.`, false);
    } catch (error) {
      this.#tell(`The custom resources cannot be read: ${messageOf(error)}`, true);
    }
  }

  async #fetch(path: string, token?: string): Promise<ShownDescription> {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const answer = await fetch(new URL(path, this.#site.base), { headers, credentials: 'omit' });
    const body = (await answer.json()) as { readonly message?: unknown };
    if (!answer.ok) throw new Error(textOf(body.message) || String(answer.status));
    return read(body);
  }

  #list(): void {
    const all = [this.#own, this.#ofCluster].filter((one) => one !== undefined);
    const operations = all.flatMap((of) => of.operations);
    this.#operations = new Map(operations.map((one) => [one.id, one]));
    this.#navigation.show(
      all.flatMap((of) => of.tags),
      operations,
    );
    // What is being filled in stays.
    if (this.#view === undefined) this.#show();
  }

  /** What the hash says. */
  #show(): void {
    if (this.#own === undefined) return;
    const id = idIn(location.hash);
    const operation = this.#operations.get(id);
    this.#view?.stop();
    this.#view =
      operation === undefined
        ? undefined
        : new OperationView(operation, {
            login: this.#login,
            base: this.#site.base,
            tell: (problem) => this.#tell(problem, true),
          });
    this.#main.replaceChildren(...(this.#view === undefined ? this.#overview(id) : [this.#view.element]));
    const title = `${this.#own.title} ${this.#own.version}`;
    document.title = operation === undefined ? title : `${operation.summary} · ${title}`;
    this.#navigation.mark(operation);
  }

  #overview(missing: string): readonly HTMLElement[] {
    const { title, version, description, tags } = this.#own as ShownDescription;
    return [
      ...(missing === ''
        ? []
        : [
            el(
              'p',
              { class: 'problem', role: 'alert' },
              `There is no operation ${isId(missing) ? missing : 'by that name'} in what is shown. It may be of a custom resource of the cluster: log in, and show these.`,
            ),
          ]),
      el('h2', { tabindex: -1 }, `${title} ${version}`),
      ...prose(description),
      el('dl', {}, ...tags.flatMap((tag) => [el('dt', {}, tag.name), el('dd', {}, tag.description)])),
      el(
        'p',
        {},
        'For programs the same is at ',
        el('a', { href: new URL('swagger/platform.json', this.#site.base).href }, 'swagger/platform.json'),
        ' (Swagger 2.0) and ',
        el('a', { href: new URL(ownDocument, this.#site.base).href }, ownDocument),
        ' (OpenAPI 3.1).',
      ),
    ];
  }

  /** What came and what was typed is of who was here, and nobody's after them. */
  #logOut(): Promise<void> {
    const ended = this.#login.end();
    this.#ofCluster = undefined;
    this.#custom.textContent = showCustom;
    this.#view?.stop();
    this.#view = undefined;
    this.#list();
    return ended;
  }

  #loginChanged(): void {
    this.#account.render();
    this.#view?.loginChanged();
  }

  #tell(text: string, isProblem: boolean, ...more: readonly Node[]): void {
    this.#problem.textContent = isProblem ? text : '';
    this.#status.replaceChildren(...(isProblem || text === '' ? [] : [text, ...more]));
  }
}

/** Whoever made the link is given no room to say something to people. */
const isId = (text: string): boolean => /^\w{1,200}$/.test(text);

/** '' of one that cannot be read. */
function idIn(hash: string): string {
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return hash.slice(1);
  }
}

const issuer = document.querySelector<HTMLMetaElement>('meta[name=issuer]')?.content ?? '';
// Where the page is may be below a path of whoever stands before the server; the modules lie beside it.
await new Docs({ base: new URL('../../../', import.meta.url), issuer }).start();

/** The page: a list of operations beside the operation named by the fragment of the URL. */
import { AccountPanel } from './account.ts';
import { button, el, prose } from './dom.ts';
import { ExplorerLogin, messageOf, type Site } from './login.ts';
import { Navigation } from './navigation.ts';
import { read, textOf, type ShownDescription, type ShownOperation } from './openapi.ts';
import { OperationView } from './operation-view.ts';

const ownDocument = 'swagger/platform.v3.json';
const customDocument = 'swagger/custom-resources.v3.json';
const showCustom = 'Show custom resources';

class Docs {
  readonly #site: Site;
  readonly #login: ExplorerLogin;
  readonly #account: AccountPanel;
  readonly #navigation: Navigation;
  /** Screen readers announce problems at once and everything else politely. */
  readonly #problem = el('p', { class: 'problem', role: 'alert' });
  readonly #status = el('p', { role: 'status' });
  readonly #main = el('main', { tabindex: -1 });
  readonly #custom: HTMLButtonElement;
  #own: ShownDescription | undefined;
  #ofCluster: ShownDescription | undefined;
  /** True if the user wants to see custom resources. The choice is preserved across a login. */
  #wantsCustom = false;
  #operations: ReadonlyMap<string, ShownOperation> = new Map();
  #view: OperationView | undefined;

  constructor(site: Site) {
    this.#site = site;
    this.#login = new ExplorerLogin(site, () => this.#loginChanged());
    this.#account = new AccountPanel({
      site,
      login: this.#login,
      logIn: () => this.#login.start(location.hash, this.#wantsCustom),
      logOut: () => this.#logOut(),
      report: (text, isProblem, ...more) => this.#report(text, isProblem, ...more),
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
      button('Skip to content', () => this.#main.focus(), { class: 'skip' }),
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
    const [withCustom] = await Promise.all([this.#finishLogin(), this.#load()]);
    if (withCustom) await this.#showCustom();
  }

  /**
   * Finishes a login if the browser returns from the login page. Resolves to true if custom resources were shown before
   * the login.
   */
  async #finishLogin(): Promise<boolean> {
    if (!location.pathname.endsWith('/docs/callback')) return false;
    const query = new URLSearchParams(location.search);
    const page = new URL('docs', this.#site.base).href;
    // Keeps the authorization code out of the history.
    history.replaceState(null, '', page);
    if (query.size === 0) return false;
    try {
      const { hash, withCustomResources } = await this.#login.finish(query);
      history.replaceState(null, '', `${page}${hash}`);
      this.#show();
      return withCustomResources;
    } catch (error) {
      this.#report(messageOf(error), true);
      return false;
    }
  }

  async #load(): Promise<void> {
    try {
      this.#own = await this.#fetch(ownDocument);
    } catch (error) {
      this.#main.replaceChildren(
        el('p', { class: 'problem', role: 'alert' }, `The API description could not be loaded: ${messageOf(error)}`),
        button('Try again', () => this.#load()),
      );
      return;
    }
    this.#list();
  }

  async #showCustom(): Promise<void> {
    if (!this.#login.isLoggedIn) return this.#report('Log in to see the custom resources of the cluster.', true);
    this.#wantsCustom = true;
    this.#report('Loading custom resources…', false);
    try {
      const description = await this.#fetch(customDocument, await this.#login.token());
      // The user may have logged out in the meantime.
      if (!this.#login.isLoggedIn) return;
      this.#ofCluster = description;
      this.#custom.textContent = 'Reload custom resources';
      this.#list();
      const { length } = this.#ofCluster.operations;
      this.#report(`${length} operations of custom resources loaded.`, false);
    } catch (error) {
      this.#report(`The custom resources could not be loaded: ${messageOf(error)}`, true);
    }
  }

  async #fetch(path: string, token?: string): Promise<ShownDescription> {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const response = await fetch(new URL(path, this.#site.base), { headers, credentials: 'omit' });
    const body = (await response.json()) as { readonly message?: unknown };
    if (!response.ok) throw new Error(textOf(body.message) || String(response.status));
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
    // An open view is not shown again, because its form would lose the input of the user.
    if (this.#view === undefined) this.#show();
  }

  /** Shows the operation that the fragment of the URL names. */
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
            report: (problem) => this.#report(problem, true),
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
              `There is no ${isId(missing) ? `operation ${missing}` : 'such operation'}. If it belongs to a custom resource, log in and show custom resources.`,
            ),
          ]),
      el('h2', { tabindex: -1 }, `${title} ${version}`),
      ...prose(description),
      el('dl', {}, ...tags.flatMap((tag) => [el('dt', {}, tag.name), el('dd', {}, tag.description)])),
      el(
        'p',
        {},
        'Machine-readable descriptions: ',
        el('a', { href: new URL('swagger/platform.json', this.#site.base).href }, 'swagger/platform.json'),
        ' (Swagger 2.0) and ',
        el('a', { href: new URL(ownDocument, this.#site.base).href }, ownDocument),
        ' (OpenAPI 3.1).',
      ),
    ];
  }

  /** Logs out, and removes all responses and input of the user from the page. */
  #logOut(): Promise<void> {
    const revoked = this.#login.end();
    this.#ofCluster = undefined;
    this.#custom.textContent = showCustom;
    this.#view?.stop();
    this.#view = undefined;
    this.#list();
    return revoked;
  }

  #loginChanged(): void {
    this.#account.render();
    this.#view?.loginChanged();
  }

  #report(text: string, isProblem: boolean, ...more: readonly Node[]): void {
    this.#problem.textContent = isProblem ? text : '';
    this.#status.replaceChildren(...(isProblem || text === '' ? [] : [text, ...more]));
  }
}

/**
 * Returns whether a text can be an operation ID. Without this check, a link to this page could put arbitrary text on
 * the page.
 */
const isId = (text: string): boolean => /^\w{1,200}$/.test(text);

function idIn(hash: string): string {
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return hash.slice(1);
  }
}

const issuer = document.querySelector<HTMLMetaElement>('meta[name=issuer]')?.content ?? '';
// A proxy may add a prefix to the path, so the base URL is derived from the URL of this module.
await new Docs({ base: new URL('../../../', import.meta.url), issuer }).start();

import { button, el, unique } from './dom.ts';
import { messageOf, type ExplorerLogin, type Site } from './login.ts';

export interface AccountPanelParts {
  readonly site: Site;
  readonly login: ExplorerLogin;
  /** Function that opens the login page. */
  readonly logIn: () => Promise<void>;
  readonly logOut: () => Promise<void>;
  readonly report: (text: string, isProblem: boolean, ...more: readonly Node[]) => void;
}

/** Shows the user who is logged in, and the ways to log in. */
export class AccountPanel {
  readonly element = el('section', { class: 'account', 'aria-label': 'Account' });
  readonly #parts: AccountPanelParts;
  /** Link to this page at the issuer, for users who opened the page at another URL. */
  readonly #elsewhere: HTMLAnchorElement;

  constructor(parts: AccountPanelParts) {
    this.#parts = parts;
    this.#elsewhere = el('a', {}, `${parts.site.issuer}/docs`);
    this.followHash();
    this.render();
  }

  /** Updates the link to point to the operation that is shown. */
  followHash(): void {
    this.#elsewhere.href = `${this.#parts.site.issuer}/docs${location.hash}`;
  }

  /** Renders the panel, and keeps the focus inside it. */
  render(): void {
    const hadFocus = this.element.contains(document.activeElement);
    this.element.replaceChildren(...(this.#parts.login.isLoggedIn ? this.#loggedIn() : this.#loggedOut()));
    if (hadFocus) this.element.querySelector<HTMLElement>('button, a')?.focus();
  }

  #loggedIn(): readonly Node[] {
    const { login } = this.#parts;
    return [el('p', {}, 'Logged in as ', el('strong', {}, login.username)), button('Log out', () => this.#logOut())];
  }

  #loggedOut(): readonly Node[] {
    const { login, logIn } = this.#parts;
    if (login.isHere) return [button('Log in', () => this.#attempt(logIn)), this.#tokenForm()];
    return [
      el(
        'p',
        {},
        'Log in at ',
        this.#elsewhere,
        ', the URL in ',
        el('code', {}, 'authentication.issuer'),
        ' of the configuration.',
      ),
      this.#tokenForm(),
    ];
  }

  #tokenForm(): HTMLElement {
    const id = unique('token');
    const input = el('input', { id, type: 'password', autocomplete: 'off', spellcheck: 'false' });
    const form = el('form', {}, el('label', { for: id }, 'Access token'), input, el('button', {}, 'Use token'));
    if (location.protocol === 'http:')
      form.prepend(
        el('p', { class: 'hint' }, 'This page was loaded over plain HTTP. Others on the network can read your token.'),
      );
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      // Some users paste the whole value of the Authorization header, including `Bearer`.
      const token = input.value.trim().replace(/^bearer\s+/i, '');
      if (token !== '') void this.#attempt(() => this.#parts.login.use(token));
    });
    return el('details', {}, el('summary', {}, 'Use an access token'), form);
  }

  async #logOut(): Promise<void> {
    await this.#attempt(async () => {
      await this.#parts.logOut();
      const { issuer } = this.#parts.site;
      this.#parts.report(
        'You are logged out of this page. ',
        false,
        el('a', { href: `${issuer}/oauth/logout` }, 'Log out of the platform too'),
      );
    });
  }

  async #attempt(act: () => Promise<void>): Promise<void> {
    this.#parts.report('', false);
    try {
      await act();
    } catch (error) {
      this.#parts.report(messageOf(error), true);
    }
  }
}

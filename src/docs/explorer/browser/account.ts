import { button, el, unique } from './dom.ts';
import { messageOf, type ExplorerLogin, type Site } from './login.ts';

export interface AccountPanelParts {
  readonly site: Site;
  readonly login: ExplorerLogin;
  /** Leaves for the login page. */
  readonly logIn: () => Promise<void>;
  readonly logOut: () => Promise<void>;
  /** `isProblem`: something did not work. */
  readonly tell: (text: string, isProblem: boolean, ...more: readonly Node[]) => void;
}

/** Who is logged in, and how to be. */
export class AccountPanel {
  readonly element = el('section', { class: 'account', 'aria-label': 'Login' });
  readonly #parts: AccountPanelParts;
  /** Where people log in, if that is not here. */
  readonly #elsewhere: HTMLAnchorElement;

  constructor(parts: AccountPanelParts) {
    this.#parts = parts;
    this.#elsewhere = el('a', {}, `${parts.site.issuer}/docs`);
    this.followHash();
    this.render();
  }

  /** What is shown here is what is shown there. */
  followHash(): void {
    this.#elsewhere.href = `${this.#parts.site.issuer}/docs${location.hash}`;
  }

  /** Whoever worked with it goes on there. */
  render(): void {
    const hadFocus = this.element.contains(document.activeElement);
    this.element.replaceChildren(...(this.#parts.login.isLoggedIn ? this.#inside() : this.#outside()));
    if (hadFocus) this.element.querySelector<HTMLElement>('button, a')?.focus();
  }

  #inside(): readonly Node[] {
    const { login } = this.#parts;
    return [el('p', {}, 'Logged in as ', el('strong', {}, login.username)), button('Log out', () => this.#logOut())];
  }

  #outside(): readonly Node[] {
    const { login, logIn } = this.#parts;
    if (login.isHere) return [button('Log in', () => this.#attempt(logIn)), this.#paste()];
    return [
      el(
        'p',
        {},
        'You log in at ',
        this.#elsewhere,
        ', the address of the platform: ',
        el('code', {}, 'authentication.issuer'),
        ' of its configuration.',
      ),
      this.#paste(),
    ];
  }

  #paste(): HTMLElement {
    const id = unique('token');
    const input = el('input', { id, type: 'password', autocomplete: 'off', spellcheck: 'false' });
    const form = el('form', {}, el('label', { for: id }, 'Access token'), input, el('button', {}, 'Use it'));
    if (location.protocol === 'http:')
      form.prepend(
        el('p', { class: 'hint' }, 'This page came over plain HTTP: whoever is on the way can read what you send.'),
      );
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      // As it stands in a header, too.
      const token = input.value.trim().replace(/^bearer\s+/i, '');
      if (token !== '') void this.#attempt(() => this.#parts.login.use(token));
    });
    return el('details', {}, el('summary', {}, 'Use a token that you have'), form);
  }

  async #logOut(): Promise<void> {
    await this.#attempt(async () => {
      await this.#parts.logOut();
      const { issuer } = this.#parts.site;
      this.#parts.tell(
        'You are logged out here. ',
        false,
        el('a', { href: `${issuer}/oauth/logout` }, 'Log this browser out of the platform too'),
      );
    });
  }

  async #attempt(what: () => Promise<void>): Promise<void> {
    this.#parts.tell('', false);
    try {
      await what();
    } catch (error) {
      this.#parts.tell(messageOf(error), true);
    }
  }
}

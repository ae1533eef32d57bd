import { shownURL } from '../runtime/redaction.ts';

/**
 * The request target in origin form (RFC 9112 section 3.2.1), split but not decoded. Requests with the same target share
 * it (filters/routing.ts), so its query must not be modified.
 */
export class RequestTarget {
  readonly text: string;
  readonly path: string;
  /** The query without the question mark. */
  readonly search: string;
  #query: URLSearchParams | undefined;
  #shown: string | undefined;

  constructor(text: string) {
    this.text = text;
    const at = text.indexOf('?');
    this.path = at === -1 ? text : text.slice(0, at);
    this.search = at === -1 ? '' : text.slice(at + 1);
  }

  get query(): URLSearchParams {
    return (this.#query ??= new URLSearchParams(this.search));
  }

  /** The target without the values of secret parameters. */
  get shown(): string {
    return (this.#shown ??= shownURL(this.text));
  }
}

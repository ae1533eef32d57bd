import { shownURL } from '../runtime/redaction.ts';

/**
 * The URL of a request, split but not decoded. Requests with the same URL share it (filters/routing.ts), so its query
 * must not be modified.
 */
export class RequestURL {
  /** The URL as received. */
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

  /** The URL without secrets. */
  get shown(): string {
    return (this.#shown ??= shownURL(this.text));
  }
}

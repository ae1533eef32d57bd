import type { Response } from 'express';
import { endWith } from '../http/response/write.ts';
import type { Route } from '../http/route.ts';

/** One thing that is served, and what the metadata tells clients of it. */
export interface OAuthEndpoint {
  readonly routes: readonly Route[];
  /** Members of RFC 8414 section 2. `at` makes the URL of a path, from the issuer. */
  metadata(at: (path: string) => string): Readonly<Record<string, unknown>>;
}

/** What nobody may keep, as RFC 6749 section 5.1 wants it. */
export const uncached = { 'Cache-Control': 'no-store', Pragma: 'no-cache' } as const;
/** What is the same for everybody and seldom changes: a signing key is published for longer than this before it signs. */
export const cacheable = { 'Cache-Control': 'public, max-age=300' } as const;

/** 200 with a JSON object. */
export function answerJSON(res: Response, body: object, headers: Readonly<Record<string, string>>): void {
  answer(res, `${JSON.stringify(body)}\n`, { 'Content-Type': 'application/json', ...headers });
}

/** 200 with this text. */
export function answer(res: Response, text: string, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  endWith(res, text);
}

import type { Response } from 'express';
import { endWith } from '../http/response/write.ts';
import type { Route } from '../http/route.ts';

/** An endpoint, and what the metadata publishes about it. */
export interface OAuthEndpoint {
  readonly routes: readonly Route[];
  /** Members of RFC 8414 section 2. `at` makes the URL of a path, from the issuer. */
  metadata(at: (path: string) => string): Readonly<Record<string, unknown>>;
}

/** RFC 6749 section 5.1. */
export const uncached = { 'Cache-Control': 'no-store', Pragma: 'no-cache' } as const;
/** For public documents that seldom change: a signing key is published for longer than this before it signs. */
export const cacheable = { 'Cache-Control': 'public, max-age=300' } as const;

/** Sends 200 with a JSON object. */
export function sendJSON(res: Response, body: object, headers: Readonly<Record<string, string>>): void {
  sendText(res, `${JSON.stringify(body)}\n`, { 'Content-Type': 'application/json', ...headers });
}

/** Sends 200 with this text. */
export function sendText(res: Response, text: string, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  endWith(res, text);
}

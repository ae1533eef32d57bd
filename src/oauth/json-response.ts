import type { Response } from 'express';
import { endWith } from '../http/response/write.ts';
import type { Route } from '../http/route.ts';

/** An OAuth endpoint, and the server metadata that describes the endpoint. */
export interface OAuthEndpoint {
  readonly routes: readonly Route[];
  /** Returns members of the metadata (RFC 8414 section 2). `at` returns the URL of a path below the issuer. */
  metadata(at: (path: string) => string): Readonly<Record<string, unknown>>;
}

/** Headers that RFC 6749 section 5.1 requires. */
export const uncached = { 'Cache-Control': 'no-store', Pragma: 'no-cache' } as const;
/**
 * Headers of public documents that rarely change. A signing key is published for longer than `max-age` before it signs
 * tokens.
 */
export const cacheable = { 'Cache-Control': 'public, max-age=300' } as const;

/** Sends 200 with a JSON object. */
export function sendJSON(res: Response, body: object, headers: Readonly<Record<string, string>>): void {
  sendText(res, `${JSON.stringify(body)}\n`, { 'Content-Type': 'application/json', ...headers });
}

/** Sends 200 with a text. */
export function sendText(res: Response, text: string, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  endWith(res, text);
}

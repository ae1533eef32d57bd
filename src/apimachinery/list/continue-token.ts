/** Continue tokens of paged lists (k8s.io/apiserver pkg/storage/continue.go). */
import { badRequest } from '../../runtime/errors.ts';

export interface ContinueToken {
  /** Version of the snapshot that the pages show; -1 for the current objects. */
  readonly resourceVersion: number;
  /** The smallest name that the next chunk may contain. */
  readonly start: string;
}

const version = 'meta.k8s.io/v1';

export const encodeContinue = (resourceVersion: number, start: string): string =>
  Buffer.from(JSON.stringify({ v: version, rv: resourceVersion, start })).toString('base64url');

const refuse = (reason: string): Error => badRequest(`invalid continue token: continue key is not valid: ${reason}`);

/** Decodes a continue token. Throws 400. */
export function decodeContinue(token: string): ContinueToken {
  if (!/^[A-Za-z0-9_-]+$/.test(token)) throw refuse('it is not base64url');
  let decoded: { v?: unknown; rv?: unknown; start?: unknown } | null;
  try {
    decoded = JSON.parse(Buffer.from(token, 'base64url').toString('utf8')) as typeof decoded;
  } catch {
    throw refuse('it is not JSON');
  }
  const { v, rv, start } = decoded ?? {};
  if (v !== version)
    throw refuse(`server does not recognize this encoded version${typeof v === 'string' ? ` ${v}` : ''}`);
  if (typeof rv !== 'number' || !Number.isSafeInteger(rv) || rv === 0)
    throw refuse(`incorrect encoded start resourceVersion (version ${version})`);
  if (typeof start !== 'string' || start === '') throw refuse(`encoded start key empty (version ${version})`);
  const key = start.replace(/^\//, '');
  if (key.split('/').some((segment) => segment === '' || segment === '.' || segment === '..')) throw refuse(start);
  return { resourceVersion: Math.max(rv, -1), start: key };
}

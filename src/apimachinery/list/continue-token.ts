/** Where a paged list goes on (k8s.io/apiserver pkg/storage/continue.go). */
import { badRequest } from '../../runtime/errors.ts';

export interface ContinueToken {
  /** Of the snapshot that is being paged through; -1: of whatever is current. */
  readonly resourceVersion: number;
  /** The first name that may follow. */
  readonly start: string;
}

const version = 'meta.k8s.io/v1';

export const encodeContinue = (resourceVersion: number, start: string): string =>
  Buffer.from(JSON.stringify({ v: version, rv: resourceVersion, start })).toString('base64url');

const refuse = (why: string): Error => badRequest(`invalid continue token: continue key is not valid: ${why}`);

/** Throws 400. */
export function decodeContinue(token: string): ContinueToken {
  if (!/^[A-Za-z0-9_-]+$/.test(token)) throw refuse('it is not base64url');
  let decoded: { v?: unknown; rv?: unknown; start?: unknown } | null;
  try {
    decoded = JSON.parse(Buffer.from(token, 'base64url').toString('utf8')) as typeof decoded;
  } catch {
    throw refuse('it holds no JSON');
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

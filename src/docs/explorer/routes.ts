/**
 * `/docs`: a page to read and to try what the descriptions describe, of any cluster that it has to do with, from this server alone. It is
 * the same for everybody and holds nothing of anybody; who logs in there is a client of this server like others.
 */
import { createHash } from 'node:crypto';
import { noSuchPath } from '../../runtime/errors.ts';
import { anonymous, type UnmatchedPaths } from '../../http/access.ts';
import { defineRoute } from '../../http/define-route.ts';
import { lenientParameters } from '../../http/request/parameters.ts';
import type { ResponseDescriptions, Route } from '../../http/route.ts';
import { PreparedDocument } from '../../http/response/prepared-document.ts';
import { described, text } from '../../http/schema.ts';
import { byIssuer } from '../platform.ts';
import { readModules } from './modules.ts';
import { shell } from './shell.ts';
import { style } from './style.ts';

/** Scripts may make no markup of text (Trusted Types), and no form is sent but by them. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const pageHeaders = {
  'Content-Security-Policy': policy,
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  // Whoever opened the page cannot lead it elsewhere, nor does it run beside them.
  'Cross-Origin-Opener-Policy': 'same-origin',
};

/** What it was asked for is in the path, so it never becomes another. */
const forever = { 'Cache-Control': 'public, max-age=31536000, immutable' };

const page: ResponseDescriptions = { 200: { description: 'A page', content: { 'text/html': text } } };
const part: ResponseDescriptions = {
  200: { description: 'A part of the page', content: { 'text/css': text, 'text/javascript': text } },
};

/** RFC 6749 section 4.1.2 and RFC 9207; the script of the page reads them. */
const callbackParameters = lenientParameters({
  code: described('The authorization code', text.optional()),
  state: described('As the page gave it', text.optional()),
  iss: described('The issuer', text.optional()),
  error: described('Why there is no code, in one word for programs', text.optional()),
  error_description: described('Why there is no code, for people', text.optional()),
});

export const unmatchedDocs: UnmatchedPaths = { paths: /^\/docs\/assets\//, access: anonymous };

export function docsRoutes({ issuer }: { readonly issuer: () => string }): readonly Route[] {
  let made: Assets | undefined;
  const assets = (): Assets => (made ??= makeAssets());
  const pages = byIssuer(issuer, (now) => {
    const { paths } = assets();
    return { docs: pageOf(now, 'docs/', '', paths), callback: pageOf(now, '', '../', paths) };
  });
  return [
    defineRoute({
      method: 'get',
      path: '/docs',
      summary: 'A page to read and to try what is described here',
      access: anonymous,
      responses: { ...page, 301: { description: 'It has no slash behind it', headers: { Location: 'Where it is' } } },
      handler: ({ req, res, context }) =>
        context.info.path.endsWith('/')
          ? void res.writeHead(301, { Location: '../docs', 'Content-Length': '0' }).end()
          : pages().docs.answer(req, res, context),
    }),
    defineRoute({
      method: 'get',
      path: '/docs/callback',
      summary: 'The same page, where a login of it comes back to',
      access: anonymous,
      query: callbackParameters,
      responses: page,
      handler: ({ req, res, context }) => pages().callback.answer(req, res, context),
    }),
    defineRoute({
      method: 'get',
      path: '/docs/assets/:digest/:file',
      summary: 'The style and the script of that page',
      access: anonymous,
      pathParameters: { digest: 'Of what they are', file: 'The name' },
      responses: part,
      handler({ req, res, context }) {
        const asset = assets().byPath.get(context.info.path);
        if (asset === undefined) throw noSuchPath();
        return asset.answer(req, res, context);
      },
    }),
  ];
}

interface Assets {
  readonly byPath: ReadonlyMap<string, PreparedDocument>;
  /** Below /docs/. */
  readonly paths: { readonly style: string; readonly modules: readonly string[] };
}

const isMain = (name: string): boolean => name.startsWith('main.');

/** All in one folder, whose name is the digest of all: a module finds the others beside it, just as they were when it was made. */
function makeAssets(): Assets {
  const modules = readModules();
  const files = new Map([['style.css', style], ...modules]);
  const hash = createHash('sha256');
  for (const [name, content] of files) hash.update(`${name}\0${content}\0`);
  const folder = `assets/${hash.digest('base64url').slice(0, 22)}`;
  const documents = [...files].map(([name, content]) => {
    const contentType = `${name.endsWith('.css') ? 'text/css' : 'text/javascript'}; charset=utf-8`;
    return [
      `/docs/${folder}/${name}`,
      new PreparedDocument([Buffer.from(content)], { contentType, headers: forever }),
    ] as const;
  });
  const names = [...modules.keys()].toSorted((a, b) => Number(isMain(b)) - Number(isMain(a)));
  return {
    byPath: new Map(documents),
    paths: { style: `${folder}/style.css`, modules: names.map((name) => `${folder}/${name}`) },
  };
}

function pageOf(issuer: string, toDocs: string, toRoot: string, paths: Assets['paths']): PreparedDocument {
  const content = shell({ issuer, toDocs, toRoot, ...paths });
  return new PreparedDocument([Buffer.from(content)], {
    contentType: 'text/html; charset=utf-8',
    headers: pageHeaders,
  });
}

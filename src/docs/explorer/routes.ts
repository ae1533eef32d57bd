/**
 * `/docs`: a page to read and try the operations of the API descriptions. The page is the same for everyone and
 * contains no user data. The script of the page logs in and sends requests like any other client.
 */
import { createHash } from 'node:crypto';
import { pathNotFound } from '../../runtime/errors.ts';
import { anonymous } from '../../http/access.ts';
import { defineRoute } from '../../http/define-route.ts';
import { lenientParameters } from '../../http/request/parameters.ts';
import type { ResponseDescriptions, Route } from '../../http/route.ts';
import { PreparedDocument } from '../../http/response/prepared-document.ts';
import { described, text } from '../../http/schema.ts';
import { byIssuer } from '../platform.ts';
import { readModules } from './modules.ts';
import { shell } from './shell.ts';
import { style } from './style.ts';

/**
 * Content Security Policy. Scripts cannot create markup from text (Trusted Types), and forms are sent by scripts only.
 */
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
  // A page of another origin that opens this page gets no reference to this page's window.
  'Cross-Origin-Opener-Policy': 'same-origin',
};

/** Browsers can cache the assets forever, because the path of an asset contains a digest of the content. */
const forever = { 'Cache-Control': 'public, max-age=31536000, immutable' };

const page: ResponseDescriptions = { 200: { description: 'The page', content: { 'text/html': text } } };
const part: ResponseDescriptions = {
  200: { description: 'The asset', content: { 'text/css': text, 'text/javascript': text } },
};

/**
 * Parameters of an authorization response (RFC 6749 section 4.1.2 and RFC 9207). The script of the page reads these
 * parameters.
 */
const callbackParameters = lenientParameters({
  code: described('Authorization code', text.optional()),
  state: described('`state` of the authorization request', text.optional()),
  iss: described('Issuer of the response', text.optional()),
  error: described('OAuth error code, if the login failed', text.optional()),
  error_description: described('Human-readable reason, if the login failed', text.optional()),
});

export function docsRoutes({ issuer }: { readonly issuer: () => string }): readonly Route[] {
  let loaded: Assets | undefined;
  const assets = (): Assets => (loaded ??= loadAssets());
  const pages = byIssuer(issuer, (now) => {
    const { paths } = assets();
    return { docs: pageOf(now, 'docs/', '', paths), callback: pageOf(now, '', '../', paths) };
  });
  return [
    defineRoute({
      method: 'get',
      path: '/docs',
      isPage: true,
      summary: 'Open the API explorer',
      description:
        'Returns an HTML page that shows the API descriptions and sends requests. Users log in on the page with the authorization code flow and PKCE. The page itself requires no authentication.',
      access: anonymous,
      responses: {
        ...page,
        301: {
          description: 'Redirect to the path without the trailing slash',
          headers: { Location: 'Path of the page' },
        },
      },
      handler: ({ req, res, context }) =>
        context.info.path.endsWith('/')
          ? void res.writeHead(301, { Location: '../docs', 'Content-Length': '0' }).end()
          : pages().docs.write(req, res, context),
    }),
    defineRoute({
      method: 'get',
      path: '/docs/callback',
      summary: 'Finish the login of the API explorer',
      description: 'Redirect URI of the OAuth client `platform-docs`. Returns the page, which reads the parameters.',
      access: anonymous,
      query: callbackParameters,
      responses: page,
      handler: ({ req, res, context }) => pages().callback.write(req, res, context),
    }),
    defineRoute({
      method: 'get',
      path: '/docs/assets/:digest/:file',
      summary: 'Get an asset of the API explorer',
      description:
        'Returns a script or the style sheet of `/docs`. Browsers cache it for a year: a changed asset has a new path.',
      access: anonymous,
      pathParameters: { digest: 'Digest of all assets', file: 'Name of the file' },
      responses: part,
      handler({ req, res, context }) {
        const asset = assets().byPath.get(context.info.path);
        if (asset === undefined) throw pathNotFound();
        return asset.write(req, res, context);
      },
    }),
  ];
}

interface Assets {
  readonly byPath: ReadonlyMap<string, PreparedDocument>;
  /** Paths relative to /docs/. */
  readonly paths: { readonly style: string; readonly modules: readonly string[] };
}

const isMain = (name: string): boolean => name.startsWith('main.');

/**
 * Reads the assets. Assets are in a folder named after their digest, so that modules import modules of the same
 * version.
 */
function loadAssets(): Assets {
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

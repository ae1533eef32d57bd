import { html } from '../../http/response/html.ts';

interface Shell {
  readonly issuer: string;
  /** Relative paths from the page to `/docs/` and to `/`. */
  readonly toDocs: string;
  readonly toRoot: string;
  /** Path relative to `/docs/`. */
  readonly style: string;
  readonly modules: readonly string[];
}

/**
 * Returns the page that is shown until its script runs. Links are relative, because a proxy may add a prefix to the
 * path.
 */
export const shell = ({ issuer, toDocs, toRoot, style, modules }: Shell): string =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="issuer" content="${issuer}" />
        <title>platform-apiserver</title>
        <link rel="stylesheet" href="${toDocs}${style}" />
        ${modules.map((name) => html`<link rel="modulepreload" href="${toDocs}${name}" />`)}
        <script type="module" src="${toDocs}${modules[0]}"></script>
      </head>
      <body>
        <main id="start">
          <h1>The APIs of the platform</h1>
          <p>
            This page needs JavaScript. If JavaScript is on and this message stays, reload the page: the server may have
            been upgraded.
          </p>
          <p>
            Machine-readable descriptions:
            <a href="${toRoot}swagger/platform.v3.json">swagger/platform.v3.json</a> (OpenAPI 3.1) and
            <a href="${toRoot}swagger/platform.json">swagger/platform.json</a> (Swagger 2.0).
          </p>
        </main>
      </body>
    </html> `.text;

import { createHash } from 'node:crypto';
import { Html } from '../../http/response/html.ts';

/**
 * Styles of all pages. The contrast of text is at least 7 on both backgrounds (WCAG 2.2, 1.4.6), and the contrast of
 * input borders is at least 3 (1.4.11).
 */
const style = `
:root { color-scheme: light dark; --back: #f4f5f7; --card: #fff; --text: #1b1f24; --soft: #4a5058; --line: #7d858f; --main: #0b4fae; --on-main: #fff; --bad: #9b1c1c; }
@media (prefers-color-scheme: dark) { :root { --back: #14171a; --card: #1e2226; --text: #eef0f2; --soft: #b9c0c8; --line: #8a939d; --main: #9cc4ff; --on-main: #10233d; --bad: #ffb4ab; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
main { max-width: 26rem; margin: 0 auto; padding: 2rem 1rem; }
section { background: var(--card); padding: 1.5rem; border-radius: .75rem; }
h1 { font-size: 1.375rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.125rem; line-height: 1.25; margin: 1.5rem 0 .5rem; }
p, ul, dl { margin: 0 0 1rem; }
a { color: var(--main); }
dt { font-weight: 600; }
dd { margin: 0 0 .5rem; }
label { display: block; font-weight: 600; margin: 1rem 0 .25rem; }
.hint { color: var(--soft); font-size: .9375rem; }
.problem { color: var(--bad); font-weight: 600; }
input { width: 100%; padding: .625rem; font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line); border-radius: .375rem; }
button { padding: .625rem 1.25rem; margin: 1.25rem .5rem 0 0; font: inherit; font-weight: 600; color: var(--on-main); background: var(--main); border: 2px solid var(--main); border-radius: .375rem; cursor: pointer; }
button.second { color: var(--main); background: transparent; }
:focus-visible { outline: 3px solid var(--main); outline-offset: 2px; }
`;

export const styleElement: Html = new Html(`<style>${style}</style>`);

/** Source expression of the styles for the Content-Security-Policy. */
export const styleHash = `'sha256-${createHash('sha256').update(style).digest('base64')}'`;

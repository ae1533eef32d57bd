/** Style sheet of the page. Contrast is at least 7 for text (WCAG 2.2, 1.4.6) and 3 for borders of inputs (1.4.11). */
export const style = `
:root { color-scheme: light dark; --back: #f4f5f7; --card: #fff; --sunk: #f4f6f8; --text: #1b1f24; --soft: #4a5058; --line: #7d858f; --faint: #d5d9de; --main: #0b4fae; --on-main: #fff; --bad: #9b1c1c; --good: #1a5c2a; --warm: #7a3e00; --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace; }
@media (prefers-color-scheme: dark) { :root { --back: #14171a; --card: #1e2226; --sunk: #171a1d; --text: #eef0f2; --soft: #b9c0c8; --line: #8a939d; --faint: #3a4046; --main: #9cc4ff; --on-main: #10233d; --bad: #ffb4ab; --good: #9fdcae; --warm: #ffc58a; } }
* { box-sizing: border-box; }
[hidden] { display: none; }
body { margin: 0; background: var(--back); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
#start { max-width: 40rem; margin: 0 auto; padding: 2rem 1rem; animation: appear 0s 1s backwards; }
@keyframes appear { from { visibility: hidden; } }
header { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem 1.5rem; padding: .75rem 1.5rem; background: var(--card); border-bottom: 1px solid var(--faint); }
header h1 { margin: 0; font-size: 1.125rem; }
header h1 a { color: inherit; text-decoration: none; }
.account { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem 1rem; margin-left: auto; }
.account p { margin: 0; }
.account form { padding: .5rem 0; max-width: 24rem; }
.columns { display: grid; grid-template-columns: 22rem minmax(0, 1fr); align-items: start; max-width: 90rem; margin: 0 auto; }
nav { position: sticky; top: 0; max-height: 100vh; overflow-y: auto; padding: 1rem 1rem 2rem 1.5rem; }
main { padding: 1rem 1.5rem 4rem; min-width: 0; }
main:focus, h2:focus { outline: none; }
.toggle { display: none; }
@media (max-width: 52rem) {
  header { padding: .75rem 1rem; }
  .toggle { display: block; }
  .account { margin-left: 0; }
  .columns { display: block; }
  nav { display: none; position: static; max-height: none; padding: 1rem; }
  nav.open { display: block; }
  main { padding: 1rem; }
}
h2 { font-size: 1.5rem; line-height: 1.25; margin: .5rem 0; }
h3 { font-size: 1.125rem; line-height: 1.25; margin: 2rem 0 .5rem; }
p, ul, dl, pre { margin: 0 0 1rem; }
a, summary { color: var(--main); }
dt { font-weight: 600; }
dd { margin: 0 0 .5rem; color: var(--soft); }
code, pre, textarea { font: .875rem/1.5 var(--mono); }
code, .type { unicode-bidi: isolate; }
.line { font-size: 1.125rem; }
.line code { font-size: 1rem; }
pre, textarea { padding: .75rem; background: var(--sunk); border: 1px solid var(--faint); border-radius: .375rem; white-space: pre-wrap; overflow-wrap: anywhere; }
pre { max-height: 32rem; overflow-y: auto; }
::highlight(json-key) { color: var(--main); }
::highlight(json-string) { color: var(--good); }
::highlight(json-literal) { color: var(--warm); }
textarea, input, select { width: 100%; color: inherit; border: 1px solid var(--line); border-radius: .375rem; }
input, select { padding: .5rem; font: inherit; background: var(--card); }
input[type=checkbox] { width: auto; margin: 0 .5rem 0 0; }
[aria-invalid=true] { border: 2px solid var(--bad); }
label { display: block; font-weight: 600; margin: .5rem 0 .25rem; }
.check { display: flex; align-items: center; margin-top: 1.75rem; }
.check label { margin: 0; }
.fields { display: grid; margin-bottom: 1rem; grid-template-columns: repeat(auto-fill, minmax(min(18rem, 100%), 1fr)); gap: 0 1.5rem; }
.fields p { margin: .25rem 0 .5rem; }
.fields .type { display: block; }
.hint, .type { color: var(--soft); font-size: .875rem; font-weight: 400; }
.problem { color: var(--bad); font-weight: 600; }
.notice p { margin: 0; }
.notice p:not(:empty) { padding: .75rem 1.5rem; background: var(--card); border-bottom: 1px solid var(--faint); }
.problem:empty, .hint:empty { margin: 0; }
.status { font-weight: 600; margin-top: 1rem; }
.buttons { display: flex; flex-wrap: wrap; gap: .5rem; }
button { padding: .5rem 1.25rem; font: inherit; font-weight: 600; color: var(--on-main); background: var(--main); border: 2px solid var(--main); border-radius: .375rem; cursor: pointer; }
button.second { color: var(--main); background: transparent; }
button:disabled { color: var(--soft); background: transparent; border-color: var(--faint); cursor: default; }
form button, textarea + button { margin-top: .5rem; }
.skip { position: absolute; left: .5rem; top: -10rem; z-index: 1; }
.skip:focus { top: .5rem; }
details { margin: .25rem 0; }
nav details details { margin-left: 1rem; }
summary { cursor: pointer; padding: .25rem 0; }
summary .hint, summary .type { margin-left: .25rem; }
nav ul { list-style: none; margin: 0 0 .5rem; padding: 0; }
nav li { margin: 0; }
nav li.hint { padding: .25rem .5rem; }
nav li a { display: block; padding: .375rem .5rem; color: var(--text); text-decoration: none; border-left: 3px solid transparent; }
nav li a:hover { background: var(--card); }
nav li a[aria-current] { background: var(--card); border-left-color: var(--main); }
@media (forced-colors: active) { nav li a { border-left-color: Canvas; } nav li a[aria-current] { border-left-color: Highlight; } }
nav .path { font-size: .875rem; }
nav .summary { display: block; color: var(--soft); font-size: .8125rem; line-height: 1.3; }
nav summary .summary { margin-left: 1.125rem; }
nav > button { width: 100%; margin-top: 1rem; }
.method { font: 700 .75rem/1 var(--mono); color: var(--main); }
.method.post { color: var(--good); }
.method.put, .method.patch { color: var(--warm); }
.method.delete { color: var(--bad); }
.schema { list-style: none; padding-left: 1rem; border-left: 1px solid var(--faint); }
.schema li { margin: .25rem 0; }
.schema p { margin: 0 0 .25rem; }
.schema .name { font-weight: 600; }
.leaf { padding: .25rem 0; }
:focus-visible { outline: 3px solid var(--main); outline-offset: 2px; }
`;

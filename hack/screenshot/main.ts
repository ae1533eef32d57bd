/**
 * Takes the screenshot docs/images/docs.png: the page /docs of a server with an in-memory cluster, a logged-in user and
 * a response.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { issuer, login, startLab } from '../../test/labs/conformance/lab.ts';
import { launch } from '../../test/labs/integration/browser.ts';
import { obtainChromium } from '../../test/labs/integration/clients.ts';
import { foundPath } from '../../test/labs/integration/lab.ts';

const file = join(import.meta.dirname, '../../docs/images/docs.png');
const program = foundPath(await obtainChromium());
const lab = await startLab();
const rules = `MAP ${new URL(issuer).host}:443 127.0.0.1:${lab.ports.https}`;
const browser = await launch(program, `--host-resolver-rules=${rules}`);
// The browser does not trust the certificate authority of the test server.
const page = await browser.newPage({ ignoreHTTPSErrors: true, viewport: { width: 1200, height: 800 } });
await page.goto(`${issuer}/docs#getNode`);
await page.getByRole('button', { name: 'Log in' }).click();
await page.getByLabel('Username').fill(login.username);
await page.getByLabel('Password').fill(login.password);
await page.getByRole('button', { name: 'Log in' }).click();
await page.getByText('Logged in as').waitFor();
await page.getByLabel('name path').fill('n1');
await page.getByRole('button', { name: 'Send' }).click();
await page.getByRole('status').filter({ hasText: 'ms' }).waitFor();
await page.getByRole('button', { name: 'Send' }).blur();
await page.setViewportSize({ width: 1200, height: 1500 });
await page.evaluate('scrollTo(0, 0)');
writeFileSync(file, await page.screenshot());
await browser.close();
await lab.stop();

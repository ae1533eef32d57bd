/** Every page of the server in a real browser. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { startBrowser } from '../labs/integration/browser.ts';
import { configure } from '../labs/integration/configure.ts';
import { colorSchemeOf, found } from '../labs/integration/looks.ts';
import { addClients, focused, newcomer, pages, resident } from '../labs/integration/pages.ts';
import { startSites, type Sites } from '../labs/integration/sites.ts';
import { createUserWithPassword, removeUser } from '../labs/integration/user-objects.ts';

const undo: (() => Promise<unknown>)[] = [];
let sites: Sites;
let browser: Browser;
beforeAll(async () => {
  undo.push(await configure(addClients));
  for (const [name, passwordChangeRequired] of [
    [newcomer, true],
    [resident, false],
  ] as const) {
    undo.push(() => removeUser(name));
    await createUserWithPassword(name, { passwordChangeRequired, displayName: name, email: `${name}@example.org` });
  }
  sites = await startSites(['console.example', 'trusted.example']);
  undo.push(sites.stop);
  browser = await startBrowser(sites);
  undo.push(() => browser.close());
});
afterAll(async () => {
  for (const one of undo.toReversed()) await one();
});

/** Returns every focusable control in tab order, and whether its focus is visible. */
async function tabbed(page: Page): Promise<readonly (readonly [string, boolean])[]> {
  const count = await page.locator('a[href], button, input:not([type=hidden])').count();
  const reached = new Map<string, boolean>();
  for (let presses = 0; presses < count + 3; presses += 1) {
    const [name, shows] = await page.evaluate<[string, boolean]>(`(() => {
      const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
      return [document.activeElement.outerHTML, outlineStyle === 'solid' && parseFloat(outlineWidth) >= 2];
    })()`);
    if (!name.startsWith('<body')) reached.set(name, shows);
    await page.keyboard.press('Tab');
  }
  expect(reached.size).toBe(count);
  return [...reached];
}

describe.each(Object.entries(pages))('the "%s" page', (_, goTo) => {
  let page: Page;
  const messages: string[] = [];
  beforeAll(async () => {
    page = await browser.newPage();
    page.on('console', (message) => messages.push(message.text()));
    await goTo(page);
  });
  afterAll(() => page.close());

  // evidence: page-csp-browser
  test('the page complies with its own content security policy', () => {
    expect(messages.filter((text) => text.includes('Content Security Policy'))).toEqual([]);
  });

  test('the page exposes no cookie to scripts', async () => {
    expect(await page.evaluate('document.cookie')).toBe('');
  });

  test('the page associates its errors with the focused field', async () => {
    const field = page.locator('input:focus');
    const alert = page.getByRole('alert');
    const wrong = (await field.count()) === 0 ? [] : await alert.allTextContents();
    const [, description] = await focused(page);
    expect(wrong.filter((text) => !description.includes(text))).toEqual([]);
  });

  test.each(['light', 'dark'] as const)('axe-core finds no accessibility problem in %s mode', async (colorScheme) => {
    await page.emulateMedia({ colorScheme });
    expect(await colorSchemeOf(page)).toBe(colorScheme);
    expect(await found(page)).toEqual([]);
  });

  test('the page fits into a window of 320 pixels', async () => {
    await page.setViewportSize({ width: 320, height: 480 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320);
  });

  test('every control on the page can be reached with the Tab key and has a visible focus indicator', async () => {
    expect((await tabbed(page)).filter(([, shows]) => !shows)).toEqual([]);
  });

  test('the page has the same heading without JavaScript', async () => {
    const without = await browser.newPage({ javaScriptEnabled: false });
    await goTo(without);
    const [one, other] = await Promise.all(
      [without, page].map((of) => of.getByRole('heading', { level: 1 }).textContent()),
    );
    expect(one).toBe(other);
    await without.close();
  });
});

/** Checks visual properties of a page in a real browser. */
import axe from 'axe-core';
import type { Page } from 'playwright-core';

/**
 * Returns the problems that axe-core finds by the rules of WCAG and best practices. The contrast must meet level AAA.
 */
export async function found(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<axe.AxeResults>(
    "axe.run(document, { preload: false, rules: { 'color-contrast-enhanced': { enabled: true } } })",
  );
  return violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(' ')}`);
}

/** Returns the color scheme, derived from the colors of the text and the background. */
export async function colorSchemeOf(page: Page): Promise<'light' | 'dark'> {
  const [back = 0, text = 0] = await page.evaluate<number[]>(`(() => {
    const { backgroundColor, color } = getComputedStyle(document.body);
    return [backgroundColor, color].map((one) => Number(one.match(/\\d+/)[0]));
  })()`);
  return back > text ? 'light' : 'dark';
}

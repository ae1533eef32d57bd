/**
 * Draws the first rows of each dashboard to docs/images. The values are the results of the dashboard's own queries,
 * from a real Prometheus that scraped two replicas under load.
 */
import { writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Dashboard, Panel, RowPanel } from '@grafana/schema';
import { build } from 'esbuild';
import { launch } from '../../test/labs/integration/browser.ts';
import { foundPath, lab } from '../../test/labs/integration/lab.ts';
import setup, { endLab } from '../../test/labs/integration/setup.ts';
import { startPrometheusInLab, type Prometheus } from '../../test/labs/monitoring/prometheus.ts';
import { dashboards, isPanel, root, substitute, type Target } from '../../test/labs/monitoring/sources.ts';
import type { DrawnPanel } from './browser/panel.ts';
import { duration, sendLoad } from './load.ts';

const rows = 3;
/** Values for Grafana's variables that fit the time range of the pictures. */
const ranges = { __rate_interval: '20s', __range: `${duration}s` };
/** Seconds between two values of a line. */
const step = 2;

const browserFolder = join(import.meta.dirname, 'browser');

/** Returns the panels of the first rows. */
function firstPanels({ panels = [] }: Dashboard): (Panel | RowPanel)[] {
  const next = panels.filter((panel) => !isPanel(panel))[rows];
  return next === undefined ? panels : panels.slice(0, panels.indexOf(next));
}

async function evaluate(
  prometheus: Prometheus,
  panel: Panel | RowPanel,
  times: readonly number[],
): Promise<DrawnPanel> {
  const targets = isPanel(panel) ? (panel.targets as Target[]) : [];
  const results = targets.map(async ({ expr, legendFormat }) => {
    const series = await prometheus.queryRange(substitute(expr, ranges), times);
    return series.map(({ metric, values }) => {
      const legend = legendFormat.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? '').trim();
      return { legend, values };
    });
  });
  return { panel, series: (await Promise.all(results)).flat() };
}

/** Returns the script of the page, which defines the global variable `page`. */
async function pageScript(): Promise<string> {
  const entryPoints = [join(browserFolder, 'main.ts')];
  const { outputFiles } = await build({ entryPoints, bundle: true, write: false, format: 'iife', globalName: 'page' });
  return outputFiles[0]?.text ?? '';
}

await setup({});
try {
  const prometheus = await startPrometheusInLab();
  await sendLoad();
  const end = Math.floor(Date.now() / 1000);
  const times = Array.from({ length: duration / step + 1 }, (_, index) => end - duration + index * step);
  const content = await pageScript();
  const browser = await launch(foundPath(lab().chromium));
  for (const [file, dashboard] of dashboards) {
    const panels = await Promise.all(firstPanels(dashboard).map((panel) => evaluate(prometheus, panel, times)));
    // uPlot formats numbers in the locale of the browser.
    const page = await browser.newPage({ viewport: { width: 1040, height: 500 }, locale: 'en-US' });
    await page.addStyleTag({ path: fileURLToPath(import.meta.resolve('uplot/dist/uPlot.min.css')) });
    await page.addStyleTag({ path: join(browserFolder, 'style.css') });
    await page.addScriptTag({ content });
    await page.evaluate(`page.draw(...${JSON.stringify([dashboard.title, panels, times])})`);
    const picture = join(root, `docs/images/dashboard-${basename(file, '.json')}.png`);
    await writeFile(picture, await page.screenshot({ fullPage: true }));
  }
  await browser.close();
  await prometheus.stop();
} finally {
  await endLab();
}

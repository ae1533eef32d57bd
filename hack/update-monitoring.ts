/**
 * Generates the chart's dashboards for Grafana from hack/monitoring.
 *
 * Usage: node hack/update-monitoring.ts [--check]. With --check, the script writes nothing and exits with 1 if a file
 * is not up to date.
 */
import path from 'node:path';
import { writeGenerated } from './generated.ts';
import { overview } from './monitoring/overview.ts';
import { security } from './monitoring/security.ts';

const folder = path.join(import.meta.dirname, '../charts/platform-apiserver/monitoring/dashboards');

for (const [name, dashboard] of Object.entries({ overview, security }))
  await writeGenerated(path.join(folder, `${name}.json`), JSON.stringify(dashboard));

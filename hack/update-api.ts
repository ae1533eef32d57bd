/**
 * Generates api/, the API descriptions of a release. The descriptions are the OpenAPI documents that a server with the
 * chart's issuer and an in-memory cluster serves. The documents of custom resources contain only the
 * CustomResourceDefinitions of this project.
 *
 * Usage: node hack/update-api.ts [--check]. With --check, the script writes nothing and exits with 1 if a file is not
 * up to date.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { format, resolveConfig } from 'prettier';
import { parse } from 'yaml';
import { parseFlags } from '../src/config/flags.ts';
import { readVersion } from '../src/runtime/package.ts';
import { describeDefinition, documentOf, type DocumentForm } from '../src/docs/openapi/custom-documents.ts';
import type { Definition } from '../src/docs/openapi/custom-resource.ts';
import { createLogger } from '../src/runtime/logger.ts';
import { startServer } from '../src/server.ts';
import { MemoryCluster } from '../test/fakes/cluster.ts';
import { writeFolder } from './generated.ts';

const api = path.join(import.meta.dirname, '../api');
const issuer = 'https://platform-apiserver.platform-system.svc';
const files = ['platform.json', 'platform.v3.json'];

/** Returns the documents that the server serves, by name. */
async function fetchDocuments(): Promise<Map<string, string>> {
  const folder = mkdtempSync(path.join(tmpdir(), 'api-'));
  try {
    const config = path.join(folder, 'platform.yaml');
    const audit = { log: null };
    writeFileSync(
      config,
      JSON.stringify({
        apiVersion: 'config.platform.io/v1alpha1',
        kind: 'PlatformConfiguration',
        authentication: { issuer },
        audit,
      }),
    );
    const ports = ['http', 'https', 'aggregated'].flatMap((name) => [`--${name}-port`, '0']);
    const bind = ['--bind-address', '127.0.0.1', '--aggregated-bind-address', '127.0.0.1'];
    const flags = parseFlags([...ports, ...bind, '--namespace', 'platform-system', '--config', config], {});
    const cluster = new MemoryCluster().client();
    const log = createLogger({ silent: true });
    const server = await startServer(flags, log, new AbortController().signal, async () => cluster);
    const fetched = files.map(async (file) => {
      const response = await fetch(`http://127.0.0.1:${server.ports.http}/swagger/${file}`);
      if (response.status !== 200) throw new Error(`${file}: ${response.status} ${await response.text()}`);
      return [file, await response.text()] as const;
    });
    const all = await Promise.all(fetched);
    await server.stop({ announce: 0, grace: 1_000 });
    return new Map(all);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Returns the documents of the CustomResourceDefinitions in manifests/crds. */
function customResources(): Map<string, string> {
  const folder = path.join(import.meta.dirname, '../manifests/crds');
  const names = readdirSync(folder).filter((name) => name !== 'kustomization.yaml');
  const written = names.map((name) =>
    describeDefinition(parse(readFileSync(path.join(folder, name), 'utf8')) as Definition),
  );
  const about = { version: readVersion(), issuer, maxBytes: Infinity };
  const text = (form: DocumentForm): string => Buffer.concat(documentOf(form, written, about)).toString('utf8');
  return new Map([
    ['custom-resources.json', text('v2')],
    ['custom-resources.v3.json', text('v3')],
  ]);
}

const style = (await resolveConfig(path.join(api, 'x.json'))) ?? {};
const wanted = new Map<string, string>();
for (const [file, text] of [...(await fetchDocuments()), ...customResources()])
  wanted.set(file, await format(text, { ...style, parser: 'json' }));
writeFolder(api, wanted);

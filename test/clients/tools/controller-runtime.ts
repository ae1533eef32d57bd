/** A controller with leader election and two replicas. The test stops the leader. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../../labs/integration/eventually.ts';
import { create, get, patch, remove } from '../../labs/integration/kube.ts';
import { lab } from '../../labs/integration/lab.ts';
import { startProgram, type Program } from '../../labs/integration/program.ts';
import type { Flow, Tool } from '../tool.ts';

const leads = (program: Program): Promise<string> => program.line('the controller leads', (line) => line === 'leads');

const elect: Flow = async (_, { gateway, namespace }) => {
  const start = (identity: string): Program => startProgram(lab().go.controller, [gateway, namespace, identity]);
  const configMaps = `/api/v1/namespaces/${namespace}/configmaps`;
  const copied = (value: string, by: string): Promise<void> =>
    eventually(`${by} copies ${value}`, async () => {
      const { annotations } = (await get(`${configMaps}/copied`)).metadata;
      if (annotations?.['copied'] !== value || annotations['by'] !== by) throw new Error(JSON.stringify(annotations));
    });
  const first = start('first');
  const programs = [first];
  try {
    await leads(first);
    const second = start('second');
    programs.push(second);
    await create(configMaps, { metadata: { name: 'copied', labels: { copied: 'yes' } }, data: { value: '1' } });
    await copied('1', 'first');
    await first.end();
    await leads(second);
    await patch(`${configMaps}/copied`, { data: { value: '2' } });
    await copied('2', 'second');
  } finally {
    await Promise.all(programs.map((program) => program.end()));
    await remove(`${configMaps}/copied`);
  }
};

export const controllerRuntime: Tool = {
  name: 'controller-runtime',
  // The setup of the integration tests builds the controller with the other programs of test/clients/go.
  build: async () => {
    const modules = await readFile(join(import.meta.dirname, '../go/go.mod'), 'utf8');
    return { version: /controller-runtime (v\S+)/.exec(modules)?.[1] ?? '', path: '' };
  },
  flows: { 'reconciles objects, and transfers leadership to another instance': elect },
};

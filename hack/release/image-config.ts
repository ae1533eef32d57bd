/**
 * The configuration of the image, read from the last stage of the Dockerfile so that both images run the same command.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ImageConfig } from './oci.ts';

const dockerfile = join(import.meta.dirname, '../../Dockerfile');

/** Base images set PATH, but the image has no base image. */
const searchPath = 'PATH=/usr/local/bin:/usr/bin:/bin';

export function imageConfig(dockerfileText = readFileSync(dockerfile, 'utf8')): ImageConfig {
  const stage = dockerfileText.slice(dockerfileText.lastIndexOf('\nFROM '));
  const values = (instruction: string): string[] =>
    [...stage.matchAll(new RegExp(`^${instruction} (.+)$`, 'gm'))].map(([, value]) => value as string);
  const value = (instruction: string): string => {
    const [first, ...more] = values(instruction);
    if (first === undefined || more.length > 0)
      throw new Error(`Dockerfile: expected one ${instruction} in the last stage`);
    return first;
  };
  return {
    User: value('USER'),
    WorkingDir: value('WORKDIR'),
    Env: [searchPath, ...values('ENV')],
    ExposedPorts: Object.fromEntries(
      value('EXPOSE')
        .split(' ')
        .map((port) => [`${port}/tcp`, {}]),
    ),
    Entrypoint: JSON.parse(value('ENTRYPOINT')) as string[],
  };
}

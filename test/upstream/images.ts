/**
 * Builds the images that the specs use, because the node cannot pull images. agnhost is built from the same Kubernetes
 * version as the specs.
 */
import { join } from 'node:path';
import { file } from '../../hack/release/files.ts';
import type { Image } from '../../hack/release/oci.ts';
import { localImage, shell } from '../e2e/images/all.ts';
import { program } from '../e2e/images/machine-files.ts';

const registry = 'registry.k8s.io/e2e-test-images';
const config = { Env: ['PATH=/usr/bin:/bin'] };

/**
 * Returns the images with the names that the specs use. `agnhost` is the path of the program, `source` the folder of
 * its source.
 */
export async function specImages(agnhost: string, source: string): Promise<Image[]> {
  const commands = [
    ...(await shell(
      'date',
      'echo',
      'false',
      'grep',
      'head',
      'hostname',
      'id',
      'ls',
      'mkdir',
      'nc',
      'test',
      'true',
      'wget',
    )),
    // Debian's busybox lacks this command.
    ...(await program('bin/printenv', '/usr/bin/printenv')),
  ];
  const certificate = ['localhost.crt', 'localhost.key'].map((name) => file(name, join(source, 'porter', name)));
  const agnhostFiles = [file('agnhost', agnhost, 0o755), ...certificate];
  return [
    // The specs of `kubectl debug` run only a shell in the nginx image, so busybox replaces nginx.
    ...['busybox:1.37.0-1', 'nginx:1.15-4'].map((name) =>
      localImage(`${registry}/${name}`, [commands], { ...config, Cmd: ['sh'] }),
    ),
    ...['2.55', '2.63.0'].map((version) =>
      localImage(`${registry}/agnhost:${version}`, [commands, agnhostFiles], {
        ...config,
        Entrypoint: ['/agnhost'],
        Cmd: ['pause'],
      }),
    ),
  ];
}

/** Container runtime and pod network. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Block } from '../../../hack/cluster/network.ts';
import { execute, output } from '../../../hack/cluster/exec.ts';
import { assertAlive, start } from '../../../hack/cluster/processes.ts';
import { until } from '../../../hack/cluster/until.ts';
import { archive, type Image } from '../../../hack/release/oci.ts';
import { names, tag } from '../images/all.ts';
import { inMemory } from '../machine/mounts.ts';
import { pluginFolder, tool } from '../machine/packages.ts';

export const socket = '/run/containerd/containerd.sock';

/**
 * Configuration without AppArmor, whose profiles belong to the machine, and without the right to protect processes from
 * the OOM killer.
 */
const configuration = (folder: string): string => `version = 2
root = "${inMemory(folder, 'containerd')}"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]

[grpc]
  address = "${socket}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${names.client}:${tag}"
  disable_apparmor = true
  restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "${pluginFolder()}"
  conf_dir = "${folder}/cni"

[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "overlayfs"
  default_runtime_name = "runc"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  BinaryName = "${tool('runc')}"
  SystemdCgroup = false
`;

/** Each pod has its own link to the node, so that kube-proxy's rules apply to every packet between pods. */
const podNetwork = (block: Block): object => ({
  cniVersion: '0.4.0',
  name: 'pods',
  plugins: [
    {
      type: 'ptp',
      ipam: {
        type: 'host-local',
        dataDir: '/run/pod-addresses',
        ranges: [[{ subnet: block.pods }]],
        routes: [{ dst: '0.0.0.0/0' }],
      },
    },
    { type: 'portmap', capabilities: { portMappings: true } },
  ],
});

export async function startContainerd(folder: string, block: Block): Promise<void> {
  mkdirSync(join(folder, 'cni'));
  writeFileSync(join(folder, 'cni/pods.conflist'), JSON.stringify(podNetwork(block)));
  writeFileSync(join(folder, 'containerd.toml'), configuration(folder));
  const containerd = await start(folder, 'containerd', [
    tool('containerd'),
    '--config',
    join(folder, 'containerd.toml'),
  ]);
  await until(
    'containerd responds',
    () => assertAlive(folder, [containerd]),
    async () => (await execute(tool('ctr'), ['--address', socket, 'version'], { timeout: 5000 })).code === 0,
    20_000,
  );
}

export async function importImage(image: Image): Promise<void> {
  const child = spawn(tool('ctr'), ['--address', socket, '--namespace', 'k8s.io', 'images', 'import', '-'], {
    stdio: ['pipe', 'ignore', 'pipe'],
    timeout: 60_000,
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const closed = once(child, 'close');
  // ctr explains errors on its output, which is not parsed.
  const { pieces } = await archive(image);
  await pipeline(Readable.from(pieces), child.stdin).catch(() => undefined);
  const [code] = (await closed) as [number | null];
  if (code !== 0) throw new Error(`${image.name} cannot be imported: ${stderr}`);
}

/** Gives an imported image a second name. */
export const tagImage = (name: string, next: string): Promise<string> =>
  output(tool('ctr'), ['--address', socket, '--namespace', 'k8s.io', 'images', 'tag', name, next]);

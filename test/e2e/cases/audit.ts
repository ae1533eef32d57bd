import { strictEqual } from 'node:assert/strict';
import type { Cluster } from '../cluster.ts';
import { names, tag } from '../images/all.ts';
import { adminPassword, helmInstall, host, logIn, namespace, nodesPath, pods } from '../release.ts';
import { step, type Case } from '../steps.ts';

/** Where pods may be as simple as they like. */
const elsewhere = 'default';
const receiver = 'audit-receiver';
const path = '/var/log/platform-apiserver/audit.log';
/** Such a node there is not, and nobody else asks for it. */
const asked = `${nodesPath}/nobody`;

interface AuditEvent {
  readonly auditID: string;
  readonly requestURI: string;
  readonly user: { readonly username: string };
  readonly responseStatus: { readonly code: number };
}

/** A container runtime keeps a line until it ends, or 16 KiB of it. */
const print =
  'http.createServer((q, s) => q.on("end", () => { console.log(); s.end(); }).pipe(process.stdout, { end: false })).listen(8080)';

export const audit: Case = {
  title: 'The audit goes to a file and to a webhook',
  steps: (cluster) => {
    let events: readonly AuditEvent[] = [];
    const eventOf = (lines: string): readonly AuditEvent[] =>
      lines
        .split('\n')
        .filter((line) => line.includes(`"requestURI":"${asked}"`))
        .map((line) => JSON.parse(line) as AuditEvent);
    return [
      step('helm upgrade to a volume for the file, and to somebody who takes what is sent', async () => {
        const url = `http://${await startReceiver(cluster)}:8080/`;
        const settings = ['auditVolume.emptyDir.sizeLimit=10Mi', `config.audit.log.path=${path}`];
        await helmInstall(cluster, ...settings, `config.audit.webhook.url=${url}`);
      }),
      step('the file of the server that was asked says who asked, and what came of it', async () => {
        const base = `http://${host}`;
        const { access_token: token } = await logIn(cluster.inside, base, await adminPassword(cluster));
        // A server that is being replaced may answer too, and writes to no file.
        await cluster.until('the event is in a file', async () => {
          strictEqual((await cluster.inside.request(`${base}${asked}`, { token })).status, 404);
          const files = await Promise.all((await pods(cluster)).map(({ metadata }) => fileOf(cluster, metadata.name)));
          events = files.flatMap(eventOf);
          return events.length > 0;
        });
        strictEqual(events[0]?.user.username, 'admin');
        strictEqual(events[0].responseStatus.code, 404);
      }),
      step('the webhook was told the same, in a list', async () => {
        await cluster.until('the event was sent', async () => {
          const lists = await cluster.kubectl(`--namespace ${elsewhere} logs ${receiver}`);
          return lists.startsWith('{"kind":"EventList"') && lists.includes(`"auditID":"${events[0]?.auditID}"`);
        });
      }),
      step('helm upgrade back, and nothing of it stays', async () => {
        await helmInstall(cluster);
        await cluster.kubectl(`--namespace ${elsewhere} delete pod ${receiver} --now`);
        await cluster.until('two servers without a volume run', async () => (await pods(cluster)).length === 2);
      }),
    ];
  },
};

/** Empty as long as nobody has asked that server. */
const fileOf = (cluster: Cluster, pod: string): Promise<string> =>
  cluster.kubectl(
    `--namespace ${namespace} exec ${pod} -- node --print`,
    `fs.existsSync('${path}') ? fs.readFileSync('${path}', 'utf8') : ''`,
  );

/** The address at which it listens; what it is sent it prints. */
async function startReceiver({ kube, until }: Cluster): Promise<string> {
  const pod = `/api/v1/namespaces/${elsewhere}/pods`;
  const containers = [{ name: receiver, image: `${names.server}:${tag}`, command: ['node', '-e', print] }];
  await kube.json(pod, { method: 'POST', body: { metadata: { name: receiver }, spec: { containers } } });
  let address = '';
  await until('the receiver runs', async () => {
    const { status } = await kube.json<{ status: { phase: string; podIP?: string } }>(`${pod}/${receiver}`);
    address = status.podIP ?? '';
    return status.phase === 'Running' && address !== '';
  });
  return address;
}

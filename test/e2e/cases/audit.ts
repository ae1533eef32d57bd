import { strictEqual } from 'node:assert/strict';
import type { Cluster } from '../cluster.ts';
import { names, tag } from '../images/all.ts';
import { adminPassword, helmInstall, host, logIn, namespace, nodesPath, pods } from '../release.ts';
import { step, type Case } from '../steps.ts';

/** Namespace that admits all pods. */
const elsewhere = 'default';
const receiver = 'audit-receiver';
const path = '/var/log/platform-apiserver/audit.log';
/** A node that does not exist, so that no other request names it. */
const requestPath = `${nodesPath}/nobody`;

interface AuditEvent {
  readonly auditID: string;
  readonly requestURI: string;
  readonly user: { readonly username: string };
  readonly responseStatus: { readonly code: number };
}

/** Prints a newline after each body, because a container runtime buffers a line until it ends or has 16 KiB. */
const print =
  'http.createServer((q, s) => q.on("end", () => { console.log(); s.end(); }).pipe(process.stdout, { end: false })).listen(8080)';

export const audit: Case = {
  title: 'The server writes the audit log to a file and sends it to a webhook',
  steps: (cluster) => {
    let events: readonly AuditEvent[] = [];
    const eventOf = (lines: string): readonly AuditEvent[] =>
      lines
        .split('\n')
        .filter((line) => line.includes(`"requestURI":"${requestPath}"`))
        .map((line) => JSON.parse(line) as AuditEvent);
    return [
      step('helm upgrade configures a volume for the audit file and a receiver for the audit webhook', async () => {
        const url = `http://${await startReceiver(cluster)}:8080/`;
        const settings = ['auditVolume.emptyDir.sizeLimit=10Mi', `config.audit.log.path=${path}`];
        await helmInstall(cluster, ...settings, `config.audit.webhook.url=${url}`);
      }),
      step(
        'the audit file of the replica that handled a request has an event with the user and the response',
        async () => {
          const base = `http://${host}`;
          const { access_token: token } = await logIn(cluster.inside, base, await adminPassword(cluster));
          // A pod of the previous configuration, which writes no audit file, may handle the request.
          await cluster.until('the event is in a file', async () => {
            strictEqual((await cluster.inside.request(`${base}${requestPath}`, { token })).status, 404);
            const files = await Promise.all(
              (await pods(cluster)).map(({ metadata }) => fileOf(cluster, metadata.name)),
            );
            events = files.flatMap(eventOf);
            return events.length > 0;
          });
          strictEqual(events[0]?.user.username, 'admin');
          strictEqual(events[0].responseStatus.code, 404);
        },
      ),
      step('the audit webhook receives the event of the audit file in an EventList', async () => {
        await cluster.until('the event was sent', async () => {
          const lists = await cluster.kubectl(`--namespace ${elsewhere} logs ${receiver}`);
          return lists.startsWith('{"kind":"EventList"') && lists.includes(`"auditID":"${events[0]?.auditID}"`);
        });
      }),
      step('helm upgrade to the previous values removes the audit file and the audit webhook', async () => {
        await helmInstall(cluster);
        await cluster.kubectl(`--namespace ${elsewhere} delete pod ${receiver} --now`);
        await cluster.until('two servers without a volume run', async () => (await pods(cluster)).length === 2);
      }),
    ];
  },
};

/** Returns the audit file of a pod, or '' before the pod has handled a request. */
const fileOf = (cluster: Cluster, pod: string): Promise<string> =>
  cluster.kubectl(
    `--namespace ${namespace} exec ${pod} -- node --print`,
    `fs.existsSync('${path}') ? fs.readFileSync('${path}', 'utf8') : ''`,
  );

/** Starts a server that prints what it receives, and returns its address. */
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

/**
 * The server of a lab in a process of its own, which tells its parent where it listens, and what its heap holds when it is asked. The
 * cluster in memory keeps no history, as kube-apiserver would not keep it in this process. Its discovery lists pods: a server without
 * discovery answers no request for them before 10 s have passed.
 */
import { startLab } from '../../labs/conformance/lab.ts';
import { putPod, serveResources } from '../../labs/conformance/logging-lab.ts';
import { heapUsed } from '../../fakes/heap.ts';
import type { MemoryCluster } from '../../fakes/cluster.ts';
import { clients, loginLimit, pod, users } from './site.ts';

let cluster: MemoryCluster | undefined;
const lab = await startLab({
  // Every attempt is looked at, from whatever address: nothing is refused before it could be kept.
  sections: {
    authentication: { issuer: 'https://platform.example', users, clients, loginLimit, multipleLogin: true },
    requests: { trustedProxies: ['127.0.0.1'], maxInFlight: 1_000, maxInFlightPerUser: 1_000 },
  },
  prepare(made) {
    cluster = made;
    serveResources(made);
    putPod(made, pod);
    const connect = made.client.bind(made);
    made.client = () => Object.assign(connect(), { requests: Object.assign([], { push: () => 0 }) });
  },
});

process.on('message', () => {
  cluster?.forgetHistory();
  process.send?.(heapUsed() + process.memoryUsage().external);
});
process.on('disconnect', () => void lab.stop().then(() => process.exit()));
process.send?.({ ports: lab.ports, frontProxy: lab.frontProxy });

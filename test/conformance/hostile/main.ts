/**
 * The server of a lab in its own process. The process sends its ports to its parent, and on request the size of its
 * heap. The in-memory cluster keeps no history, since a real kube-apiserver would keep the history in another process.
 * Discovery lists pods: without discovery, the server would respond to requests for pods only after 10 s.
 */
import { startLab } from '../../labs/conformance/lab.ts';
import { putPod, serveResources } from '../../labs/conformance/logging-lab.ts';
import { heapUsed } from '../../fakes/heap.ts';
import type { MemoryCluster } from '../../fakes/cluster.ts';
import { clients, loginLimit, pod, users } from './site.ts';

let cluster: MemoryCluster | undefined;
const lab = await startLab({
  // No limits apply, so that every attempt reaches all places that could keep a string.
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

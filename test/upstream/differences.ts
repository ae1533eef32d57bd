/**
 * Specs that pass at kube-apiserver and fail through the gateway, each with its reason. The list is complete: `make
 * conformance` fails if another spec differs, or if a listed spec passes.
 */
export interface Difference {
  /** Full name of the spec. */
  readonly spec: string;
  readonly reason: string;
}

export const differences: readonly Difference[] = [
  {
    spec: '[sig-auth] Certificates API [Privileged:ClusterAdmin] should support building a client with a CSR',
    reason: 'The client authenticates with a certificate. The gateway accepts only tokens, and responds with 401.',
  },
  {
    spec: '[sig-api-machinery] health handlers should contain necessary checks',
    reason: '`/healthz?verbose` lists the checks of this server, not those of kube-apiserver.',
  },
  {
    spec: '[sig-api-machinery] API priority and fairness should ensure that requests can be classified by adding FlowSchema and PriorityLevelConfiguration',
    reason: 'The spec waits for a metric of kube-apiserver. `/metrics` returns those of this server.',
  },
];

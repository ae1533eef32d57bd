/**
 * Selects the specs of the Kubernetes end-to-end tests that run. Ginkgo matches the expressions with the name of the
 * suite and of the spec. Their syntax is valid in both JavaScript and Go.
 */
export interface Group {
  readonly reason: string;
  readonly specs: readonly RegExp[];
}

/** A spec runs if an expression of `focus` matches and no expression of `skip` matches. */
export interface Selection {
  readonly focus: readonly Group[];
  readonly skip: readonly Group[];
}

const unreliable: Group = {
  reason: 'Load, faults and chance: the results depend on the speed of the machine.',
  specs: [/\[Slow\]/, /\[Disruptive\]/, /\[Flaky\]/, /drowned out/, /90 percent/, /iterative rollouts/],
};

const focus: readonly Group[] = [
  {
    reason:
      'API machinery: verbs, watches, lists in chunks, patches, tables, discovery, OpenAPI, admission policies, custom resources.',
    specs: [/\[sig-api-machinery\]/, /^\[sig-architecture\]/],
  },
  {
    reason: 'Every operation of one resource, with its status, scale and collections.',
    specs: [
      /\[sig-instrumentation\] Events/,
      /\[sig-network\] (Ingress API|IngressClass API|ServiceCIDR|API Server)/,
      /\[sig-network\] Services should (complete|delete|find)/,
      /\[sig-network\] EndpointSlice should support creating/,
      /\[sig-network\] Endpoints should test/,
      /\[sig-node\] (Lease|Node Lifecycle|PodTemplates)/,
      /\[sig-node\] RuntimeClass should (support|reject)/,
      /\[sig-node\] ConfigMap should (fail|run|update)/,
      /\[sig-node\] Secrets should (fail|patch)/,
      /\[sig-scheduling\] (LimitRange|SchedulerPreemption \[Serial\] PriorityClass)/,
      /\[sig-storage\] (CSINodes|CSIStorageCapacity|StorageClasses|VolumeAttachment|VolumeAttributesClass)/,
      /\[sig-storage\] PersistentVolumes.*CSI Conformance/,
      /\[sig-storage\] (ConfigMap|Secrets) should be immutable/,
    ],
  },
  {
    reason: 'Identity: token requests and reviews, access reviews, certificate signing requests, service accounts.',
    specs: [
      /\[sig-auth\] (SubjectReview|SelfSubjectReview|Certificates)/,
      /\[sig-auth\] ServiceAccounts should (run|update|create|guarantee)/,
    ],
  },
  {
    reason: 'kubectl, run as a program: create, apply, diff, describe, wait, proxy, rollout.',
    specs: [
      /\[sig-cli\] Kubectl client (Kubectl|Proxy|kubectl)/,
      /\[sig-cli\] (kubectl kuberc|Kubectl delete interactive|Kubectl rollout undo)/,
    ],
  },
  {
    reason: 'Controllers and the scheduler, with pods that the simulated nodes report as running.',
    specs: [
      /\[sig-apps\] (ControllerRevision|CronJob should support CronJob|Deployment |DisruptionController.*Conformance)/,
      /\[sig-apps\] ReplicaSet (Replace|Replicaset|should (adopt|list|validate))/,
      /\[sig-apps\] ReplicationController should (adopt|get|release|surface|test)/,
      /\[sig-apps\] StatefulSet Basic.*should (have a working|list|validate)/,
      /\[sig-apps\] Daemon set \[Serial\] should (list|rollback|run and stop simple|verify)/,
      /\[sig-network\] (EndpointsController|EndpointSliceMirroring|EndpointSlice should create)/,
      /\[sig-node\] Pods (Extended Pod|should (be submitted|be updated|delete a coll|patch|run through|get a host))/,
      /\[sig-scheduling\] SchedulerPredicates \[Serial\] validates (that NodeSelector|Pods with non-empty)/,
    ],
  },
];

const skip: readonly Group[] = [
  {
    reason:
      'A container must run: webhooks, an aggregated server, logs, exec, pods that serve requests or write files.',
    specs: [
      /AdmissionWebhook|ConversionWebhook|FieldSelectors/,
      /Aggregator|Aggregated APIServer/,
      /Kubectl copy|Kubectl expose/,
      /EndpointSliceMirroring .*multiple subsets/,
    ],
  },
  {
    reason:
      'A kubelet must act: it fails or evicts pods, keeps a pod unready without its image, or reports the observed generation.',
    specs: [/Pod Container (Status|lifecycle)/, /proportional scaling/, /rollback without unnecessary restarts/],
  },
  {
    reason: 'Features that this control plane does not enable, and other components.',
    specs: [/\[Feature:/, /\[DRA\]/, /etcd/],
  },
  unreliable,
];

/** Specs for which an API server, controllers, a scheduler and simulated nodes suffice. */
export const simulated: Selection = { focus, skip };

/** Specs that need running containers. */
export const node: Selection = {
  focus: [
    {
      reason: 'kubectl with a running container: exec, attach, port-forward, cp, run, logs, debug.',
      specs: [
        /\[sig-cli\] Kubectl client (Simple pod|Guestbook|Kubectl copy|Kubectl expose)/,
        /\[sig-cli\] (Kubectl logs|Kubectl exec|Kubectl Port forwarding|kubectl debug)/,
      ],
    },
    {
      reason: 'The same operations by client-go, over SPDY and WebSockets.',
      specs: [
        /\[sig-node\] Pods should support (remote command execution|retrieving logs)/,
        /\[sig-node\] Ephemeral Containers/,
        /\[sig-node\] Kubelet when scheduling a busybox command in a pod/,
        /\[sig-auth\] ServiceAccounts should (mount|allow opting)/,
      ],
    },
    { reason: 'The subresource proxy of services, pods and nodes.', specs: [/\[sig-network\] Proxy version v1/] },
  ],
  skip: [unreliable],
};

/** Joins all expressions of the groups into one expression. */
export const pattern = (groups: readonly Group[]): string =>
  groups.flatMap(({ specs }) => specs.map(({ source }) => source)).join('|');

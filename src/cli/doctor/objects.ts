/** The fields of Kubernetes objects that the checks read. */
import type { KubeObject } from '../../cluster/client/kube-object.ts';

type Labels = Readonly<Record<string, string>>;

export interface LabelSelector {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: string[];
  }[];
}

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

interface Container {
  readonly name: string;
  readonly args?: readonly string[];
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
}

export interface Deployment extends KubeObject {
  readonly spec: {
    readonly replicas?: number;
    readonly selector: LabelSelector;
    readonly template: {
      readonly metadata?: { readonly labels?: Labels };
      readonly spec: {
        readonly serviceAccountName?: string;
        readonly hostNetwork?: boolean;
        readonly containers: readonly Container[];
        readonly volumes?: readonly { readonly name: string; readonly secret?: { readonly secretName?: string } }[];
      };
    };
  };
  readonly status?: { readonly conditions?: readonly Condition[] };
}

interface ContainerState {
  readonly running?: object;
  readonly waiting?: { readonly reason?: string; readonly message?: string };
  readonly terminated?: { readonly reason?: string; readonly exitCode: number };
}

export interface Pod extends KubeObject {
  readonly status?: {
    readonly phase?: string;
    readonly conditions?: readonly Condition[];
    readonly containerStatuses?: readonly {
      readonly name: string;
      readonly ready: boolean;
      readonly restartCount: number;
      readonly state?: ContainerState;
      readonly lastState?: ContainerState;
    }[];
  };
}

export interface Service extends KubeObject {
  readonly spec: {
    readonly selector?: Labels;
    readonly ports?: readonly { readonly name?: string; readonly port: number }[];
  };
}

export interface EndpointSlice extends KubeObject {
  readonly endpoints?: readonly {
    readonly addresses: readonly string[];
    readonly conditions?: { readonly ready?: boolean };
  }[];
  readonly ports?: readonly { readonly name?: string; readonly port?: number }[];
}

export interface APIService extends KubeObject {
  readonly spec: {
    readonly service?: { readonly name: string; readonly namespace: string; readonly port?: number };
    /** CA certificates in PEM, encoded as base64. */
    readonly caBundle?: string;
    readonly insecureSkipTLSVerify?: boolean;
  };
  readonly status?: { readonly conditions?: readonly Condition[] };
}

interface NetworkPolicyRule {
  readonly ports?: readonly {
    readonly port?: number | string;
    readonly endPort?: number;
    readonly protocol?: string;
  }[];
  readonly from?: readonly object[];
}

export interface NetworkPolicy extends KubeObject {
  readonly spec: {
    readonly podSelector?: LabelSelector;
    readonly policyTypes?: readonly string[];
    readonly ingress?: readonly NetworkPolicyRule[];
  };
}

export interface Event extends KubeObject {
  readonly reason?: string;
  readonly message?: string;
  readonly involvedObject: { readonly resourceVersion?: string };
}

/** Returns whether a selector matches labels (metav1.LabelSelector). */
export function matches({ matchLabels = {}, matchExpressions = [] }: LabelSelector, labels: Labels): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      const value = labels[key];
      if (operator === 'Exists') return value !== undefined;
      if (operator === 'DoesNotExist') return value === undefined;
      return (value !== undefined && values.includes(value)) === (operator === 'In');
    })
  );
}

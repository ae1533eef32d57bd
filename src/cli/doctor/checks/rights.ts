/** Checks the rights of the server, which the chart grants to the ServiceAccount of the pods. */
import { qualifiedName } from '../../../runtime/group-resource.ts';
import { mapConcurrent } from '../../../runtime/promises.ts';
import { chartRights, type PolicyRule } from '../chart-rights.ts';
import { failed, ok, type Check } from '../check.ts';
import type { Context } from '../context.ts';
import { resources } from '../reader.ts';
import { kubeApiserver } from './kube-apiserver.ts';

/** Maximum number of reviews in progress. */
const concurrency = 16;

interface Grant {
  /** Kind and name of the role. */
  readonly role: string;
  /** Namespace of the binding; undefined for all namespaces. */
  readonly namespace: string | undefined;
  readonly rules: readonly PolicyRule[];
}

interface ResourceAttributes {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly name?: string;
  readonly namespace?: string;
}

export const rights: Check = {
  name: 'rights',
  needs: [kubeApiserver.name],
  async *run(context) {
    const { namespace, reader } = context;
    const account = await context.serviceAccount();
    const user = `system:serviceaccount:${namespace}:${account}`;
    const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
    let isComplete = true;
    for (const grant of await grantsOf(context)) {
      const wanted = attributesOf(grant);
      const allowed = await mapConcurrent(wanted, concurrency, async (resourceAttributes) => {
        const { status } = await reader.review<{ readonly status: { readonly allowed: boolean } }>(
          resources.subjectAccessReviews,
          {
            apiVersion: 'authorization.k8s.io/v1',
            kind: 'SubjectAccessReview',
            spec: { user, groups, resourceAttributes },
          },
        );
        return status.allowed;
      });
      const [first, ...others] = wanted.filter((_, index) => allowed[index] === false);
      if (first === undefined) continue;
      isComplete = false;
      const more = others.length === 0 ? '' : ` and ${others.length} more rights`;
      yield failed(
        `ServiceAccount ${namespace}/${account} lacks the right to ${describe(first)}${more} of ${grant.role}: the role or its binding was changed or deleted`,
        await context.restore(),
      );
    }
    if (isComplete) yield ok(`ServiceAccount ${namespace}/${account} has all rights of the chart`);
  },
};

/** Returns the grants of the chart for this release, and the grant of the built-in role that the chart binds. */
async function grantsOf(context: Context): Promise<Grant[]> {
  const { namespace } = context;
  const { configMap } = await context.flags();
  const reader: Grant = {
    role: 'Role kube-system/extension-apiserver-authentication-reader',
    namespace: 'kube-system',
    rules: [
      {
        apiGroups: [''],
        resources: ['configmaps'],
        resourceNames: ['extension-apiserver-authentication'],
        verbs: ['get', 'list', 'watch'],
      },
    ],
  };
  const grants = chartRights.map(({ kind, name, rules }): Grant => ({
    role: `${kind} ${name}`,
    namespace: kind === 'Role' ? namespace : undefined,
    rules: rules.map((rule) => withNames(rule, (one) => (one === 'platform-config' ? configMap : one))),
  }));
  return [...grants, reader];
}

const withNames = (rule: PolicyRule, map: (name: string) => string): PolicyRule =>
  rule.resourceNames === undefined ? rule : { ...rule, resourceNames: rule.resourceNames.map(map) };

/** Returns each request that a role allows. */
export function attributesOf({ namespace, rules }: Pick<Grant, 'namespace' | 'rules'>): ResourceAttributes[] {
  return rules.flatMap(({ apiGroups, resources: names, resourceNames = [undefined], verbs }) =>
    apiGroups.flatMap((group) =>
      names.flatMap((full) =>
        resourceNames.flatMap((name) =>
          verbs.map((verb) => {
            const [resource = '', subresource] = full.split('/');
            return {
              verb,
              group,
              resource,
              ...(subresource === undefined ? {} : { subresource }),
              ...(name === undefined ? {} : { name }),
              ...(namespace === undefined ? {} : { namespace }),
            };
          }),
        ),
      ),
    ),
  );
}

function describe({ verb, group, resource, subresource, name }: ResourceAttributes): string {
  const full = [qualifiedName({ group, resource }), ...(subresource === undefined ? [] : [subresource])];
  return `${verb} ${full.join('/')}${name === undefined ? '' : ` "${name}"`}`;
}

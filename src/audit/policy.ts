/**
 * Evaluates the audit policy as k8s.io/apiserver pkg/audit/policy/checker.go does: the first matching rule applies. A
 * request without a matching rule has no event.
 */
import type { AuditLevel, AuditPolicy, AuditStage } from '../config/audit.ts';
import { anonymousUser, type Audited } from './event.ts';

export interface AuditDecision {
  readonly level: AuditLevel;
  readonly omitStages: readonly AuditStage[];
  readonly omitManagedFields: boolean;
}

type Rule = AuditPolicy['rules'][number];

export function evaluatePolicy(policy: AuditPolicy, request: Audited): AuditDecision {
  const rule = policy.rules.find((one) => matches(one, request));
  return {
    level: rule?.level ?? 'None',
    omitStages: rule === undefined ? policy.omitStages : policy.omitStages.concat(rule.omitStages),
    omitManagedFields: rule?.omitManagedFields ?? policy.omitManagedFields,
  };
}

const isAmong = <T>(all: readonly T[], one: T): boolean => all.length === 0 || all.includes(one);

function matches(rule: Rule, request: Audited): boolean {
  const { user = anonymousUser, info } = request;
  if (!isAmong(rule.users, user.username) || !isAmong(rule.verbs, info.verb)) return false;
  if (rule.userGroups.length > 0 && !rule.userGroups.some((group) => user.groups.includes(group))) return false;
  if (rule.namespaces.length > 0 || rule.resources.length > 0) return matchesResource(rule, request);
  return rule.nonResourceURLs.length === 0 || matchesPath(rule, request);
}

function matchesPath({ nonResourceURLs }: Rule, { info }: Audited): boolean {
  if (info.isResourceRequest) return false;
  return nonResourceURLs.some((url) =>
    url.endsWith('*') ? info.path.startsWith(url.slice(0, -1)) : info.path === url,
  );
}

function matchesResource({ namespaces, resources }: Rule, { info }: Audited): boolean {
  if (!info.isResourceRequest || !isAmong(namespaces, info.namespace)) return false;
  const { resource, subresource, name } = info;
  const whole = subresource === '' ? resource : `${resource}/${subresource}`;
  const isMatch = (pattern: string): boolean =>
    pattern === '*' ||
    pattern === whole ||
    (subresource !== '' && pattern === `*/${subresource}`) ||
    pattern === `${resource}/*`;
  return (
    resources.length === 0 ||
    resources.some(
      ({ group, resources: patterns, resourceNames }) =>
        group === info.group && (patterns.length === 0 || (isAmong(resourceNames, name) && patterns.some(isMatch))),
    )
  );
}

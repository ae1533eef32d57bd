/** What the descriptions call things. */

export const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

/** `stable.example.com` is StableExampleCom. */
export const camel = (text: string): string =>
  text
    .split(/[^A-Za-z0-9]+/)
    .map(capital)
    .join('');

/** `io.platform.resources.v1alpha3` for group resources.platform.io: the reversed domain, as Kubernetes names its own. */
export const packageOf = (group: string, version: string): string =>
  `${group.split('.').toReversed().join('.')}.${version}`;

/** `/apis/x/:name` and `/x/*path` as OpenAPI writes them. */
export const templated = (path: string): string => path.replace(/[:*](\w+)/g, '{$1}');

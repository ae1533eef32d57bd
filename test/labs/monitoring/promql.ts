/** Parses PromQL with the parser of the editor in the Prometheus UI. */
import type { SyntaxNode } from '@lezer/common';
import { parser } from '@prometheus-io/lezer-promql';

interface Matcher {
  readonly label: string;
  readonly operator: string;
  readonly value: string;
}

/** A selector of time series within an expression. */
export interface Selector {
  readonly text: string;
  readonly metric: string;
  readonly matchers: readonly Matcher[];
  /** Labels by which the aggregations around the selector group. */
  readonly grouping: readonly string[];
}

/** Returns the selectors of an expression. Throws if the syntax is invalid. */
export function selectorsIn(expression: string): Selector[] {
  const textOf = ({ from, to }: { readonly from: number; readonly to: number }): string => expression.slice(from, to);
  const selectors: Selector[] = [];
  parser.parse(expression).iterate({
    enter({ type, node }) {
      if (type.isError) throw new Error(`invalid syntax at ${node.from}: ${expression}`);
      if (type.name !== 'VectorSelector') return;
      const [name] = node.getChildren('Identifier');
      const matchers = node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? [];
      selectors.push({
        text: textOf(node),
        metric: name === undefined ? '' : textOf(name),
        matchers: matchers.map((matcher) => {
          const [label = '', operator = '', value = ''] = ['LabelName', 'MatchOp', 'StringLiteral'].map((part) =>
            textOf(matcher.getChild(part) ?? { from: 0, to: 0 }),
          );
          return { label, operator, value: value.slice(1, -1) };
        }),
        grouping: groupings(node).map(textOf),
      });
    },
  });
  return selectors;
}

function groupings(node: SyntaxNode): SyntaxNode[] {
  const { parent } = node;
  if (parent === null) return [];
  const labels = parent.getChild('AggregateModifier')?.getChild('GroupingLabels')?.getChildren('LabelName') ?? [];
  return [...labels, ...groupings(parent)];
}

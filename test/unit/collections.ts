/** Finds the collections in a source file that can grow and can outlive the call that creates them. */
import { parseSync, visitorKeys } from 'oxc-parser';

interface Node {
  readonly type: string;
  readonly start: number;
  readonly [key: string]: unknown;
}

export interface Collection {
  /** The class with the field, or the function with the variable; '' for a module. */
  readonly owner: string;
  readonly name: string;
}

/** Functions that call their callback before they return. */
const immediate = new Set(
  'map flatMap filter some every find findIndex findLast forEach reduce toSorted sort from replace replaceAll groupBy'.split(
    ' ',
  ),
);
const mutations = new Set(['set', 'add', 'push', 'unshift', 'splice']);
const constructors = new Set(['Map', 'Set', 'Array', 'LRUCache']);

const isNode = (value: unknown): value is Node => typeof (value as Partial<Node> | null)?.type === 'string';
const childrenOf = (node: Node): Node[] =>
  (visitorKeys[node.type] ?? []).flatMap((key) => [node[key]].flat().filter(isNode));
const isFunction = ({ type }: Node): boolean =>
  /^(?:FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(type);
function nameOf(node: unknown): string {
  const name = isNode(node) ? node['name'] : undefined;
  return typeof name === 'string' ? name : '';
}

/** Returns the name of a field of `this` or of a variable, or undefined for any other expression. */
function targetOf(node: unknown): string | undefined {
  if (!isNode(node)) return undefined;
  if (node.type === 'Identifier') return nameOf(node);
  if (/^(?:TSAsExpression|TSNonNullExpression|ParenthesizedExpression)$/.test(node.type))
    return targetOf(node['expression']);
  if (node.type === 'AssignmentExpression') return targetOf(node['left']);
  const isField = node.type === 'MemberExpression' && (node['object'] as Node).type === 'ThisExpression';
  return isField ? `this.${nameOf(node['property'])}` : undefined;
}

/** Reports whether this expression creates a collection. */
function makes(node: unknown): boolean {
  if (!isNode(node)) return false;
  switch (node.type) {
    case 'NewExpression':
      return constructors.has(nameOf(node['callee']));
    case 'ArrayExpression':
      return true;
    case 'ObjectExpression':
      return (node['properties'] as unknown[]).length === 0;
    case 'LogicalExpression':
      return makes(node['right']);
    case 'TSAsExpression':
    case 'ParenthesizedExpression':
      return makes(node['expression']);
    default:
      return false;
  }
}

class Finder {
  readonly found: Collection[] = [];
  readonly #mutated = new Set<string>();
  readonly #made: { readonly target: string; readonly path: readonly Node[] }[] = [];
  readonly #uses: { readonly name: string; readonly path: readonly Node[] }[] = [];

  constructor(program: Node) {
    this.#visit(program, []);
    const seen = new Set<string>();
    for (const { target, path } of this.#made) {
      if (!this.#mutated.has(target)) continue;
      const owner = target.startsWith('this.') ? classOf(path) : this.#keeper(target, path);
      const name = target.replace('this.', '');
      if (owner === undefined || seen.has(`${owner} ${name}`)) continue;
      seen.add(`${owner} ${name}`);
      this.found.push({ owner, name });
    }
  }

  #visit(node: Node, path: readonly Node[]): void {
    const within = [...path, node];
    switch (node.type) {
      case 'PropertyDefinition':
        if (makes(node['value'])) this.#made.push({ target: `this.${nameOf(node['key'])}`, path: within });
        break;
      case 'VariableDeclarator':
        if (makes(node['init'])) this.#made.push({ target: nameOf(node['id']), path: within });
        break;
      case 'AssignmentExpression':
        this.#assign(node, within);
        break;
      case 'CallExpression': {
        const { object, property } = node['callee'] as Node;
        if (mutations.has(nameOf(property))) this.#mutated.add(targetOf(object) ?? '');
        break;
      }
      case 'Identifier':
        this.#uses.push({ name: nameOf(node), path });
        break;
      default:
    }
    for (const child of childrenOf(node)) this.#visit(child, within);
  }

  #assign(node: Node, path: readonly Node[]): void {
    const left = node['left'] as Node;
    const target = targetOf(left);
    if (target !== undefined && makes(node['right'])) this.#made.push({ target, path });
    // The assignment adds a member to an array or an object.
    if (left.type === 'MemberExpression' && left['computed'] === true)
      this.#mutated.add(targetOf(left['object']) ?? '');
  }

  /** Returns the owner of a variable: the module, or the function whose inner functions refer to it later. */
  #keeper(name: string, path: readonly Node[]): string | undefined {
    const at = path.findLastIndex(isFunction);
    if (at === -1) return '';
    const maker = path[at];
    const isKept = this.#uses.some((use) => {
      const inside = use.path.indexOf(maker as Node);
      if (use.name !== name || inside === -1) return false;
      return use.path.some(
        (node, index) => index > inside && isFunction(node) && !isImmediate(use.path[index - 1], node),
      );
    });
    return isKept ? functionName(path, at) : undefined;
  }
}

function isImmediate(parent: Node | undefined, node: Node): boolean {
  if (parent?.type !== 'CallExpression') return false;
  const callee = parent['callee'] as Node;
  return callee === node || immediate.has(nameOf(callee['property']));
}

function classOf(path: readonly Node[]): string {
  const found = path.findLast(({ type }) => type === 'ClassDeclaration' || type === 'ClassExpression');
  return nameOf(found?.['id']);
}

function functionName(path: readonly Node[], at: number): string {
  for (let index = at; index >= 0; index -= 1) {
    const node = path[index] as Node;
    const name = nameOf(node['id'] ?? (node.type === 'MethodDefinition' ? node['key'] : undefined));
    if (name !== '') return name;
  }
  return '';
}

export function collectionsIn(file: string, text: string): readonly Collection[] {
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message ?? ''}`);
  return new Finder(program as unknown as Node).found;
}

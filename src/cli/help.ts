import { flagsTable } from '../config/flags.ts';
import { readVersion } from '../runtime/version.ts';

const program = 'platform-apiserver';

/** How each command is called and what it does; the one without a name serves. */
const commands: readonly [string, string][] = [
  ['[flags]', 'serves until SIGTERM or SIGINT'],
  [
    'check-config FILE',
    'says everything that is wrong with a cluster configuration, or its ConfigMap; - is standard input',
  ],
  [
    'credential [--server=URL] [--ca-file=FILE] [--login=device|password] [--username=NAME] [--audience=NAME] [--logout]',
    'prints a token for kubectl, whose credential plugin it is; logs in where it must, and out with --logout',
  ],
  ['hash-password', 'asks for a password, or reads it from standard input, and prints its hash'],
  ['--version', 'prints the version'],
];

/** What a command line that asks for help or the version gets; undefined if it asks for neither. */
export function informationFor(argv: readonly string[]): string | undefined {
  const end = argv.indexOf('--');
  const asked = end === -1 ? argv : argv.slice(0, end);
  if (asked.includes('--help') || asked.includes('-h')) return help(asked[0] ?? '');
  return asked[0] === '--version' ? `${program} ${readVersion()}` : undefined;
}

function help(name: string): string {
  const tool = commands.find(([call]) => call.split(' ')[0] === name && !name.startsWith('-'));
  if (tool !== undefined) return `usage: ${program} ${tool[0]}\n\n${tool[1]}`;
  const calls = commands.map(([call, what]): [string, string] => [`${program} ${call}`, what]);
  return `usage: ${program} [flags | command]\n\n${table(calls)}\n\nflags:\n${table(flagsTable())}`;
}

function table(rows: readonly [string, string][]): string {
  const width = Math.max(...rows.map(([first]) => first.length));
  return rows.map(([first, second]) => `  ${first.padEnd(width)}  ${second}`).join('\n');
}

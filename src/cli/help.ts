import { credentialFlagsTable, doctorFlagsTable, flagsTable, UsageError } from '../config/flags.ts';
import { nearest } from '../config/error-map.ts';
import { readVersion } from '../runtime/package.ts';

const program = 'platform-apiserver';
/** Width of the help in columns. */
const width = 80;

type Row = readonly [term: string, description: string];

interface Command {
  readonly call: string;
  readonly description: string;
  readonly flags?: () => readonly Row[];
}

const commands: Readonly<Record<string, Command>> = {
  'check-config': {
    call: 'check-config FILE',
    description:
      'Report all problems in a configuration file, or in the ConfigMap that contains it. FILE can be - for standard input.',
  },
  credential: {
    call: 'credential [flags]',
    description:
      'Print a token for kubectl (credential plugin). Refreshes the cached token if possible, and logs in otherwise.',
    flags: credentialFlagsTable,
  },
  doctor: {
    call: 'doctor [flags]',
    description:
      'Check the release in the cluster, and report why the API is unavailable. Prints a command for each problem, which fixes the problem or shows more.',
    flags: doctorFlagsTable,
  },
  'hash-password': {
    call: 'hash-password',
    description: 'Print the hash of a password, which is entered at the terminal or read from standard input.',
  },
  version: { call: 'version', description: 'Print the version.' },
};

/** Returns the response to --help or --version; undefined if the command line has neither. */
export function informationFor(argv: readonly string[]): string | undefined {
  const end = argv.indexOf('--');
  const given = end === -1 ? argv : argv.slice(0, end);
  if (given.includes('--help') || given.includes('-h')) return help(given[0] ?? '');
  return given[0] === '--version' ? versionLine() : undefined;
}

export const versionLine = (): string => `${program} ${readVersion()}`;

/**
 * Throws UsageError if the command line starts with a word, because all known commands are handled before this call.
 */
export function rejectUnknownCommand([first = '']: readonly string[]): void {
  if (first === '' || first.startsWith('-')) return;
  const names = Object.keys(commands);
  const near = nearest(first, names);
  throw new UsageError(
    `unknown command ${JSON.stringify(first)}${near === undefined ? `; the commands are ${names.join(', ')}` : `; did you mean "${near}"?`}`,
  );
}

function help(name: string): string {
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command !== undefined)
    return [
      `Usage: ${program} ${command.call}`,
      wrapped(command.description, width).join('\n'),
      ...(command.flags === undefined ? [] : [`Flags:\n${table(command.flags())}`]),
    ].join('\n\n');
  const rows = Object.values(commands).map(({ call, description }): Row => [call, description]);
  return `Usage: ${program} [flags]
       ${program} COMMAND

Without a command, the server runs until it receives SIGTERM or SIGINT.

Commands:
${table(rows)}

Flags:
${table(flagsTable())}

"${program} COMMAND --help" describes a command.`;
}

/** Returns two columns. Descriptions are wrapped. The description of a long term starts on the next line. */
function table(rows: readonly Row[]): string {
  const indent = 24;
  const margin = ' '.repeat(indent);
  return rows
    .map(([term, description]) => {
      const lines = wrapped(description, width - indent).join(`\n${margin}`);
      const start = `  ${term}`;
      return start.length + 2 > indent ? `${start}\n${margin}${lines}` : `${start.padEnd(indent)}${lines}`;
    })
    .join('\n');
}

/** Breaks text at spaces into lines of at most `columns` characters. */
function wrapped(text: string, columns: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > columns) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

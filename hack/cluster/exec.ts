import { spawn } from 'node:child_process';

export interface Executed {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface ExecOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** Milliseconds after which the program is killed. */
  readonly timeout?: number;
  /** Receives standard error as it arrives. */
  readonly onStderr?: (text: string) => void;
}

/**
 * Runs a program until it exits and returns its exit code, or 127 if it cannot be started. The library execa would
 * replace only these lines: it supports neither sessions that outlive this process nor a deadline for several processes
 * (processes.ts).
 */
export function execute(program: string, args: readonly string[], options: ExecOptions = {}): Promise<Executed> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: options.timeout,
      killSignal: 'SIGKILL',
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
      options.onStderr?.(text);
    });
    child.stdin.on('error', () => undefined).end(options.input ?? '');
    child.on('error', (error) => resolve({ code: 127, stdout, stderr: error.message }));
    child.on('close', (code, signal) =>
      resolve({ code: code ?? 1, stdout, stderr: signal ? `${stderr}${signal}` : stderr }),
    );
  });
}

/** Runs a program and returns its standard output. Throws if its exit code is not 0. */
export async function output(program: string, args: readonly string[], options: ExecOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await execute(program, args, options);
  if (code !== 0)
    throw new Error(`${program} ${args.join(' ')} failed with exit code ${code}: ${(stderr || stdout).trim()}`);
  return stdout;
}

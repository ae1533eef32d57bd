import { performance } from 'node:perf_hooks';

interface Step {
  /** What it is at just now; shown on a terminal only. */
  detail(text: string): void;
  end(succeeded: boolean): void;
}

export const seconds = (since: number): string => `${((performance.now() - since) / 1000).toFixed(1)} s`;

/** One step that takes its time: a line that counts the seconds on a terminal, else a line at its begin and one at its end. */
export function progress(title: string): Step {
  const begin = performance.now();
  const { stderr } = process;
  if (!stderr.isTTY) {
    // Not through console, to which jest adds the source of each line.
    stderr.write(`${title} …\n`);
    return {
      detail: () => undefined,
      end: (succeeded) => stderr.write(`${title}: ${succeeded ? 'done' : 'failed'} after ${seconds(begin)}\n`),
    };
  }
  let detail = '';
  const draw = (): boolean =>
    stderr.write(`\r\u001b[K${`${title} ${seconds(begin)} ${detail}`.slice(0, (stderr.columns || 80) - 1)}`);
  const timer = setInterval(draw, 200);
  draw();
  return {
    detail: (text) => (detail = text),
    end: (succeeded) => {
      clearInterval(timer);
      stderr.write(`\r\u001b[K${title}: ${succeeded ? 'done' : 'failed'} after ${seconds(begin)}\n`);
    },
  };
}

import { performance } from 'node:perf_hooks';

interface Step {
  /** Shows the current activity, on a terminal only. */
  detail(text: string): void;
  end(succeeded: boolean): void;
}

export const seconds = (since: number): string => `${((performance.now() - since) / 1000).toFixed(1)} s`;

/**
 * Reports the progress of a slow step: on a terminal as a line that counts the seconds, elsewhere as a line at its
 * start and end.
 */
export function progress(title: string): Step {
  const startedAt = performance.now();
  const { stderr } = process;
  if (!stderr.isTTY) {
    // `console` is not used here, because jest adds a source line to all output of `console`.
    stderr.write(`${title} …\n`);
    return {
      detail: () => undefined,
      end: (succeeded) => stderr.write(`${title}: ${succeeded ? 'done' : 'failed'} after ${seconds(startedAt)}\n`),
    };
  }
  let detail = '';
  const draw = (): boolean =>
    stderr.write(`\r\u001b[K${`${title} ${seconds(startedAt)} ${detail}`.slice(0, (stderr.columns || 80) - 1)}`);
  const timer = setInterval(draw, 200);
  draw();
  return {
    detail: (text) => (detail = text),
    end: (succeeded) => {
      clearInterval(timer);
      stderr.write(`\r\u001b[K${title}: ${succeeded ? 'done' : 'failed'} after ${seconds(startedAt)}\n`);
    },
  };
}

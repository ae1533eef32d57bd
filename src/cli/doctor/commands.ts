/**
 * Commands that the user can paste into a shell. Tags of template literals write these commands, so that names from the
 * cluster are always quoted.
 */

/** Quotes a word for a POSIX shell if needed. */
const quote = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

/** Returns a command in which each inserted word is quoted. */
export const shell = (text: TemplateStringsArray, ...words: readonly string[]): string =>
  String.raw({ raw: text }, ...words.map(quote));

export interface CommandsOptions {
  readonly namespace: string;
  /** Flags with which the doctor was called. */
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
}

export class Commands {
  readonly #options: CommandsOptions;

  constructor(options: CommandsOptions) {
    this.#options = options;
  }

  /** Returns a kubectl command for cluster-scoped objects. */
  kubectl(text: TemplateStringsArray, ...words: readonly string[]): string {
    return this.#command('kubectl', '--context', shell(text, ...words));
  }

  /** Returns a kubectl command for objects in the namespace of the release. */
  inNamespace(text: TemplateStringsArray, ...words: readonly string[]): string {
    return this.#command('kubectl', '--context', this.#withNamespace(shell(text, ...words)));
  }

  helm(text: TemplateStringsArray, ...words: readonly string[]): string {
    return this.#command('helm', '--kube-context', this.#withNamespace(shell(text, ...words)));
  }

  /**
   * Returns the command that applies the objects of the release again. The command adds the annotations by which Helm
   * recognizes its objects, because the manifest does not contain them. The command uses Helm's field manager, so that
   * the next upgrade has no conflict.
   */
  restore(release: string): string {
    const { namespace } = this.#options;
    return [
      this.helm`get manifest ${release}`,
      shell`kubectl annotate --local --overwrite -o yaml -f - meta.helm.sh/release-name=${release} meta.helm.sh/release-namespace=${namespace}`,
      this.kubectl`apply --server-side --force-conflicts --field-manager=helm -f -`,
    ].join(' | ');
  }

  #withNamespace(rest: string): string {
    return `${shell`-n ${this.#options.namespace}`} ${rest}`;
  }

  #command(program: string, contextFlag: string, rest: string): string {
    const { kubeconfig, context } = this.#options;
    return [
      program,
      ...(kubeconfig === undefined ? [] : [shell`--kubeconfig=${kubeconfig}`]),
      ...(context === undefined ? [] : [shell`${contextFlag}=${context}`]),
      rest,
    ].join(' ');
  }
}

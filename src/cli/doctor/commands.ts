/** Commands that the user can paste into a shell. */

/** Quotes a word for a POSIX shell if needed. */
const quote = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

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
  kubectl(rest: string): string {
    return this.#command('kubectl', '--context', rest);
  }

  /** Returns a kubectl command for objects in the namespace of the release. */
  inNamespace(rest: string): string {
    return this.kubectl(`-n ${this.#options.namespace} ${rest}`);
  }

  helm(rest: string): string {
    return this.#command('helm', '--kube-context', `-n ${this.#options.namespace} ${rest}`);
  }

  /**
   * Returns the command that applies the objects of the release again. The command adds the annotations by which Helm
   * recognizes its objects, because the manifest does not contain them. The command uses Helm's field manager, so that
   * the next upgrade has no conflict.
   */
  restore(release: string): string {
    const owner = `meta.helm.sh/release-name=${release} meta.helm.sh/release-namespace=${this.#options.namespace}`;
    return [
      this.helm(`get manifest ${release}`),
      `kubectl annotate --local --overwrite -o yaml -f - ${owner}`,
      this.kubectl('apply --server-side --force-conflicts --field-manager=helm -f -'),
    ].join(' | ');
  }

  #command(program: string, contextFlag: string, rest: string): string {
    const { kubeconfig, context } = this.#options;
    return [
      program,
      ...(kubeconfig === undefined ? [] : [`--kubeconfig=${quote(kubeconfig)}`]),
      ...(context === undefined ? [] : [`${contextFlag}=${quote(context)}`]),
      rest,
    ].join(' ');
  }
}

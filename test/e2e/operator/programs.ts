/** Programs of other projects that an operator runs in the cluster: an Ingress controller, and monitoring. */
import { traefikDefinitions, traefikProgram } from '../../../hack/ingress/traefik.ts';
import { prometheusProgram, promtool } from '../../../hack/monitoring/prometheus.ts';

export interface OperatorPrograms {
  readonly traefik: string;
  readonly prometheus: string;
  readonly promtool: string;
  /** File with the definitions of the custom resources that Traefik reads. */
  readonly definitions: string;
}

/** Returns the paths of the programs, which are built once per machine. */
export async function operatorPrograms(): Promise<OperatorPrograms> {
  const [traefik, prometheus] = [await traefikProgram(), await prometheusProgram()];
  const [definitions = ''] = await traefikDefinitions();
  return { traefik, prometheus, promtool: await promtool(), definitions };
}

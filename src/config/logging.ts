/** Where logs are read. */
import { z } from 'zod';
import { bytes } from './fields.ts';

const pods = z.strictObject({
  maxBytesPerContainer: bytes('64Mi').describe(
    'Of one container a query reads no more than this, and says so; well above the size at which kubelet rotates a log',
  ),
});

export const logging = z.strictObject({
  store: z
    .enum(['pods'], { error: 'must be "pods": other log stores are not served by this version' })
    .default('pods')
    .describe("pods: what the nodes still keep of the pods' logs, read through kube-apiserver"),
  pods: pods.optional(),
});

/** Commonly used properties of core/v1 Node. They are optional, because the parameter `fields` can omit them. */
import { described, flag, list, mapOf, named, object, open, text, time, type Schema } from '../../http/schema.ts';

const orNull = (schema: Schema): Schema => schema.nullable();
const quantities = (description: string): Schema => described(description, mapOf(text));
const part = (name: string, properties: Readonly<Record<string, Schema>>): Schema =>
  named(name, open(object({}, properties)));

const taint = part('Taint', {
  key: text,
  value: text,
  effect: described('`NoSchedule`, `PreferNoSchedule` or `NoExecute`', text),
  timeAdded: time,
});

const condition = part('NodeCondition', {
  type: described('Type of the condition, such as `Ready` or `MemoryPressure`', text),
  status: described('`True`, `False` or `Unknown`', text),
  reason: text,
  message: text,
  lastHeartbeatTime: orNull(time),
  lastTransitionTime: orNull(time),
});

const address = part('NodeAddress', {
  type: described('Type of the address, such as `InternalIP` or `Hostname`', text),
  address: text,
});

const info = part('NodeSystemInfo', {
  architecture: text,
  bootID: text,
  containerRuntimeVersion: text,
  kernelVersion: text,
  kubeletVersion: text,
  machineID: text,
  operatingSystem: text,
  osImage: text,
  systemUUID: text,
});

export const nodeSchema = {
  spec: part('NodeSpec', {
    podCIDR: text,
    podCIDRs: list(text),
    providerID: text,
    taints: list(taint),
    unschedulable: flag,
  }),
  status: part('NodeStatus', {
    addresses: list(address),
    allocatable: quantities('Quantities available to pods, by resource'),
    capacity: quantities('Quantities of the node, by resource'),
    conditions: list(condition),
    nodeInfo: info,
  }),
};

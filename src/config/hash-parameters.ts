/** Algorithm and cost of a password hash: `bcrypt:12`, `argon2id:19456:2:1` (memory in KiB, passes, lanes). */
export type HashParameters = string;

/** Maximum costs. With higher costs, a single login would exhaust the server's memory or CPU. */
const maxBcryptCost = 16;
const maxArgon2 = { memory: 256 * 1024, passes: 16, lanes: 16 } as const;

/** Base64 without padding, as argon2 writes it: at least 8 bytes of salt and 16 bytes of hash. */
const base64 = '(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2,3})?';
const argon2id = new RegExp(
  `^\\$argon2id\\$v=19\\$m=(\\d{1,7}),t=(\\d{1,3}),p=(\\d{1,3})\\$(?=.{11,86}\\$)${base64}\\$(?=.{22,86}$)${base64}$`,
);

/** Returns the parameters of a hash; undefined if the text is not a hash that this server can verify. */
export function parametersOf(hash: string): HashParameters | undefined {
  const blowfish = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/.exec(hash);
  if (blowfish !== null) {
    const cost = Number(blowfish[1]);
    return cost < 4 || cost > maxBcryptCost ? undefined : `bcrypt:${cost}`;
  }
  const found = argon2id.exec(hash);
  if (found === null) return undefined;
  const [memory = 0, passes = 0, lanes = 0] = found.slice(1).map(Number);
  const fits =
    memory >= 8 * lanes &&
    memory <= maxArgon2.memory &&
    passes >= 1 &&
    passes <= maxArgon2.passes &&
    lanes >= 1 &&
    lanes <= maxArgon2.lanes;
  return fits ? `argon2id:${memory}:${passes}:${lanes}` : undefined;
}

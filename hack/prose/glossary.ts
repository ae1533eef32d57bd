/** Terms of the writing style (CONTRIBUTING.md): what not to write, and what to write instead. */
export interface Term {
  readonly pattern: RegExp;
  readonly instead: string;
}

const term = (source: string, instead: string): Term => ({
  pattern: new RegExp(String.raw`\b(?:${source})\b`, 'gi'),
  instead,
});

export const glossary: readonly Term[] = [
  term('answer(?:s|ed|ing)?', '“response”, “respond” or “reply”'),
  // Some uses are correct: pages and programs ask users.
  term('ask(?:s|ed|ing)?(?! (?:for|to|again|the user|users)\\b)|asked for', '“request”, “query” or “demand”'),
  term('questions?(?! mark)', '“request” or “query”'),
  term('judg(?:e|es|ed)', '“authenticate”, “validate”, “authorize” or “review”'),
  term('mend(?:s|ed|ing)?', '“fix” or “repair”'),
  term('anew|again and again', '“again” or “repeatedly”'),
  term('in vain', '“missing”, “unresolved” or “without effect”'),
  term('(?:is|are|was|were|be|been) had', '“is available”, “is returned” or “is obtained”'),
  term('told(?! to\\b)|telling', '“reported”, “returned”, “shown” or “notified”'),
  term('lets? (?:\\w+ )?in(?! flight)', '“authorize”, “admit” or “allow”'),
  term('stands? in|stood in', '“is in”'),
  term('neighbou?rs?', '“dependency”'),
  term('what is past', '“history”'),
  term('people of (?:a|the) directory', '“LDAP users”'),
  term('the same again', '“confirm”, or name what it is'),
  term('none of ours', '“unknown” or “not issued by this server”'),
  term('(?:is|are) read over', '“is skipped”'),
  term('whoever|whosoever', 'the actor, for example “users who …”'),
  term('begun', '“started”'),
  term('give or take', '“about” or “to within”'),
  term('in the place of', '“instead of”'),
  term('as just that|good once|holds? (?:them|it|him|her) up', 'what happens, in the terms of the RFC'),
  term('patience|mercy', '“timeout” or “grace period”'),
];

/** Openings of sentences that have no actor, or hide it in a free relative. */
export const openings: readonly Term[] = [
  {
    pattern:
      /^(?:Of|Who|Whose|Whom|What|Whatever|Where|Wherever)\b(?! (?:possible|needed|available|applicable|to expect)\b)/g,
    instead: 'a noun, a name or a verb: name the actor first',
  },
];

/** Openings of test titles that cannot be understood without the title of their group. */
export const titleOpenings: readonly Term[] = [
  {
    pattern:
      /^(?:that|whose|who|which|of|by|for|to|as|and|but|is|are|has|have|does|do|may|can|cannot|never|gets|returns|rejects|accepts|keeps|reports|sends|requires|works|fails|ends)\b/g,
    instead: 'a full statement: name the subject first',
  },
];

/** Maximum words between two stops; semicolons and colons are stops too. */
export const maxWords = 40;

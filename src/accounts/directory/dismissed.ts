/** Of whom, or of which client, all that was begun shall end for good. */
export type Dismissed = { readonly userUID: string } | { readonly clientID: string };

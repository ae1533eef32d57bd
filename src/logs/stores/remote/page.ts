/** Characters of the records of a page. */
export const mostOnPage = 8 * 1024 * 1024;

/** Why a page has fewer. */
export const tooLarge = 'the page has more than 8 MiB: take a smaller size, or operation=export';

/** Of an answer, in bytes: as many records are asked for as make about so much. */
export const wantedBytes = 2 * 1024 * 1024;
/** An answer of more bytes is left, unless it is of one record, and fewer are asked for: exports of slow readers hold it. */
export const mostOfSeveral = 4 * 1024 * 1024;

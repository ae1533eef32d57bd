/** Characters of the records of a page. */
export const mostOnPage = 8 * 1024 * 1024;

/** Why a page has fewer. */
export const tooLarge = 'the page has more than 8 MiB: take a smaller size, or operation=export';

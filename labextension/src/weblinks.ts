/** Addresses of pages in what a job prints. */

/** A part of a text; with an address it is a link. */
export interface IPart {
  text: string;
  isAddress: boolean;
}

// Neither quotes nor brackets around an address nor the end of a sentence belong to it.
const ADDRESS = /https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?()[\]{}]/gi;

/** Split a text into addresses and what is between them. `isCut`: what follows is not here, so its end may be half an address. */
export function splitAddresses(text: string, isCut: boolean): IPart[] {
  const found: IPart[] = [];
  let at = 0;
  const push = (part: string, isAddress: boolean): void => {
    if (part) {
      found.push({ text: part, isAddress });
    }
  };
  for (const match of text.includes('://') ? text.matchAll(ADDRESS) : []) {
    const start = match.index ?? 0;
    const end = start + match[0].length;
    if (!isCut || /\s/.test(text.slice(end))) {
      push(text.slice(at, start), false);
      push(match[0], true);
      at = end;
    }
  }
  push(text.slice(at), false);
  return found;
}

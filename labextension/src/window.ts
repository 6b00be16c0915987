/** Which rows of a long list are on the screen, and where. */

/** A browser cannot make an element of any height; beyond this, scrolling is scaled. */
export const TALLEST = 15_000_000;

export interface IView {
  rows: number;
  rowHeight: number;
  /** Height of what can be seen. */
  viewport: number;
  scrollTop: number;
}

export interface IPlacement {
  /** Height of the whole, as far as the scroll bar is concerned. */
  height: number;
  /** First row to draw, and how many. */
  first: number;
  count: number;
  /** Where the first row drawn is. */
  top: number;
}

/** Rows to draw above and below what can be seen. */
const SPARE = 12;

export function place({ rows, rowHeight, viewport, scrollTop }: IView): IPlacement {
  const full = rows * rowHeight;
  const height = Math.min(full, TALLEST);
  const seen = Math.ceil(viewport / rowHeight) + 1;
  const way = Math.max(0, height - viewport);
  const fullWay = Math.max(0, full - viewport);
  const at = Math.min(Math.max(0, scrollTop), way);
  // Where the eye is in the full height: the same where nothing is scaled.
  const offset = height === full || way === 0 ? at : (at / way) * fullWay;
  const first = Math.max(0, Math.floor(offset / rowHeight) - SPARE);
  const count = Math.min(rows - first, seen + 2 * SPARE);
  return { height, first, count, top: at + first * rowHeight - offset };
}

/** Where to scroll so that a row is in the middle. */
export function scrollTo(row: number, view: IView): number {
  const { rows, rowHeight, viewport } = view;
  const full = rows * rowHeight;
  const fullWay = Math.max(0, full - viewport);
  const way = Math.max(0, Math.min(full, TALLEST) - viewport);
  const offset = Math.min(Math.max(0, (row + 0.5) * rowHeight - viewport / 2), fullWay);
  return fullWay === 0 ? 0 : (offset / fullWay) * way;
}

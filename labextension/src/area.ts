/** Where pages of ours go in each front end. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { SplitPanel, TabPanel, Widget } from '@lumino/widgets';

const NOTEBOOK7 = 'Jupyter Notebook';
/** Below this, the area below the notebook shows nothing but its tabs. */
const LEAST_PIXELS = 120;

/**
 * Show a new page of ours: beside the notebook, or below it in Notebook 7, whose main area holds one document and
 * refuses all else without a word.
 */
export function showPage(app: JupyterFrontEnd, page: Widget): void {
  app.shell.add(page, app.name === NOTEBOOK7 ? 'down' : 'main');
  goToPage(app, page);
}

/** Bring a page to the front. */
export function goToPage(app: JupyterFrontEnd, page: Widget): void {
  app.shell.activateById(page.id);
  if (app.name === NOTEBOOK7) {
    bringUp(page);
  }
}

/**
 * Notebook 7 neither turns to a tab below the notebook nor gives that area a height; a height that somebody has
 * dragged stays.
 */
function bringUp(page: Widget): void {
  let area: Widget | null = page;
  while (area && !(area.parent instanceof SplitPanel)) {
    area = area.parent;
    if (area instanceof TabPanel) {
      area.currentWidget = page;
    }
  }
  const below = area;
  requestAnimationFrame(() => {
    if (below && below.node.offsetHeight < LEAST_PIXELS) {
      (below.parent as SplitPanel).setRelativeSizes([1, 1]);
    }
  });
}

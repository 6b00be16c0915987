/** The cell that a menu was opened on: it need not be the one that is active. */

import type { JupyterFrontEnd } from '@jupyterlab/application';

import { asPanel, INotebookPanel } from './panel';

const CELL = 'jp-Cell';

/** Find the cell whose node the menu was opened on; null where it was opened elsewhere. */
export function clickedCell(app: JupyterFrontEnd): INotebookPanel['content']['widgets'][number] | null {
  const node = app.contextMenuHitTest(element => element.classList.contains(CELL));
  const panel = asPanel(app.shell.currentWidget);
  return panel?.content.widgets.find(cell => cell.node === node) ?? null;
}

/** Make the cell that was clicked the active one, as a click with the other button would. */
export function activateClicked(app: JupyterFrontEnd): void {
  const cell = clickedCell(app);
  const panel = asPanel(app.shell.currentWidget);
  if (cell && panel) {
    panel.content.activeCellIndex = panel.content.widgets.indexOf(cell);
  }
}

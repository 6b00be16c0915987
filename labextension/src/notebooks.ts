/** The notebook panels of the page: found by their path, opened at a cell. */

import type { JupyterFrontEnd } from '@jupyterlab/application';

import { ICellPlace } from './model';
import { asPanel, INotebookPanel } from './panel';
import { cellIndex } from './places';

/** The open panel of a notebook, whatever drive it was opened from: a collaboration drive shows the same files. */
export function openPanel(app: JupyterFrontEnd, path: string): INotebookPanel | null {
  for (const widget of app.shell.widgets('main')) {
    const panel = asPanel(widget);
    if (panel && app.serviceManager.contents.localPath(panel.context.path) === path) {
      return panel;
    }
  }
  return null;
}

/** Go to a cell, and to a line of it; say whether it is there. */
export async function goTo(panel: INotebookPanel, place: ICellPlace): Promise<boolean> {
  await panel.context.ready;
  const { content } = panel;
  const index = cellIndex(
    content.widgets.map(({ model }) => ({ id: model.id, executionCount: model.executionCount })),
    place
  );
  if (index < 0) {
    return false;
  }
  content.activeCellIndex = index;
  await content.scrollToItem?.(index, 'smart');
  const cell = content.widgets[index];
  await cell.ready;
  if (place.line) {
    cell.inputHidden = false;
    cell.editor?.setCursorPosition({ line: place.line - 1, column: 0 });
    cell.editor?.focus();
  }
  return true;
}

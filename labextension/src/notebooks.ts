/** The notebook panels of the page, as far as jobs have to do with them; their package would be a large one to build with. */

import type { JupyterFrontEnd } from '@jupyterlab/application';

import { ICellPlace } from './model';
import { cellIndex } from './places';

/** The part of a cell that is used here. */
interface ICellWidget {
  model: { id: string; type: string; executionCount?: number | null; sharedModel?: { getSource(): string } };
  editor?: { setCursorPosition(position: { line: number; column: number }): void; focus(): void } | null;
  inputHidden?: boolean;
  ready?: Promise<void>;
}

export interface INotebookPanel {
  id: string;
  context: {
    path: string;
    ready: Promise<void>;
    model: { readOnly: boolean; dirty: boolean };
    save(): Promise<void>;
  };
  content: {
    widgets: ICellWidget[];
    activeCell: ICellWidget | null;
    activeCellIndex: number;
    scrollToItem?(index: number, align: string): Promise<void>;
    activate?(): void;
  };
}

/** The widget as a notebook panel, if it is one. */
export function asPanel(widget: unknown): INotebookPanel | null {
  const panel = widget as Partial<INotebookPanel> | null | undefined;
  return panel?.context && panel.content && 'activeCellIndex' in panel.content ? (panel as INotebookPanel) : null;
}

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

/** The panel of a notebook, as far as jobs have to do with it; its package would be a large one to build with. */

/** The part of a cell that is used here. */
export interface ICellWidget {
  node: HTMLElement;
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
  sessionContext?: { session: { kernel: { id: string; name: string } | null } | null };
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

/** The widget as a notebook panel whose active cell is one of code. */
export function atCode(widget: unknown): INotebookPanel | null {
  const panel = asPanel(widget);
  return panel?.content.activeCell?.model.type === 'code' ? panel : null;
}

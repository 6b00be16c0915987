/** "Run this cell as a job": in the toolbar of a code cell, its menu and the palette. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { LabIcon } from '@jupyterlab/ui-components';

import { CommandIDs, IContext } from './context';
import { asPanel } from './notebooks';

export function addCellButton(app: JupyterFrontEnd, context: IContext, icon: LabIcon): void {
  const { trans } = context;
  const panel = (): ReturnType<typeof asPanel> => {
    const found = asPanel(app.shell.currentWidget);
    return found?.content.activeCell?.model.type === 'code' ? found : null;
  };
  app.commands.addCommand(CommandIDs.runCell, {
    label: trans.__('Run this cell as a job'),
    caption: trans.__('Run this cell as a job, with the cells above that it needs'),
    icon,
    isEnabled: () => panel() !== null,
    isVisible: () => panel() !== null,
    execute: async () => {
      const found = panel();
      if (found) {
        const { runCell } = await import('./runcell');
        await runCell(context, found, path => app.serviceManager.contents.localPath(path));
      }
    }
  });
  app.contextMenu.addItem({ command: CommandIDs.runCell, selector: '.jp-Notebook .jp-CodeCell', rank: 9.5 });
}

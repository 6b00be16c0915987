/** Links to lines of logs: the page that gets such an address opens the log there; then its address is short again. */

import type { IRouter, JupyterFrontEnd } from '@jupyterlab/application';

import { CommandIDs } from './context';
import { LINK, lineText, readLink, withoutLink } from './linelinks';

const COMMAND = 'paijupyter:open-link';

export function addLinks(app: JupyterFrontEnd, router: IRouter | null): void {
  if (!router) {
    return;
  }
  app.commands.addCommand(COMMAND, {
    execute: () => {
      const { hash, path, search } = router.current;
      const link = readLink(search ?? '');
      router.navigate(path + withoutLink(search ?? '') + (hash ?? ''), { skipRouting: true });
      if (link) {
        const { id, task, line } = link;
        const open = (): Promise<unknown> =>
          app.commands.execute(CommandIDs.openLog, { id, task, line: line && lineText(line) });
        app.restored.then(open).catch(error => console.error('paijupyter: the link cannot be opened', error));
      }
    }
  });
  router.register({ command: COMMAND, pattern: LINK, rank: 40 });
}

/** Links to lines of logs: the page that gets such an address opens the log there; then its address is short again. */

import type { IRouter, JupyterFrontEnd } from '@jupyterlab/application';

import { CommandIDs } from './ids';
import { lineText, readLink, withoutLink } from './linelinks';

export async function openLink(app: JupyterFrontEnd, router: IRouter): Promise<void> {
  const { hash, path, search } = router.current;
  const link = readLink(search ?? '');
  router.navigate(path + withoutLink(search ?? '') + (hash ?? ''), { skipRouting: true });
  if (link) {
    const { id, task, line } = link;
    await app.restored;
    await app.commands.execute(CommandIDs.openLog, { id, task, line: line && lineText(line) });
  }
}

/** Whether the page hears of changes, said in the head of the list. */

import { IContext } from './context';
import { setAttribute, setText } from './dom';

export function drawConnection(node: HTMLElement, context: IContext): void {
  const { trans } = context;
  const { connection } = context.store;
  const said = {
    connecting: trans.__('connecting'),
    live: trans.__('live'),
    lost: trans.__('not connected'),
    missing: trans.__('no job server')
  };
  const titles = {
    connecting: '',
    live: trans.__('Changes are shown as they happen'),
    lost: trans.__('The job server cannot be reached; press to try now'),
    missing: trans.__('This Jupyter server has no job server: install paijupyter there and enable its extension')
  };
  setText(node, said[connection]);
  setAttribute(node, 'title', titles[connection]);
  setAttribute(node, 'data-connection', connection);
}

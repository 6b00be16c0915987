/** What can be done with several jobs and groups at once: stop them, delete them. */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

import { errorText, IContext } from './context';
import { Button, h } from './dom';
import { Entry, isGroup } from './groups';
import { isFinal } from './words';

/** Those that go on and may be stopped from here, and those that have ended and may be deleted. */
export function sorted(entries: Entry[]): { stoppable: Entry[]; deletable: Entry[] } {
  return {
    stoppable: entries.filter(each => !isFinal(each.state) && each.mine),
    deletable: entries.filter(each => isFinal(each.state) && each.mine)
  };
}

/** Leave out the jobs whose group is among them: what is done to it is done to them. */
export function withoutMembers(entries: Entry[]): Entry[] {
  const groups = new Set(entries.filter(isGroup).map(each => each.id));
  return entries.filter(each => isGroup(each) || !groups.has(each.group?.id ?? ''));
}

/** Says how many rows are chosen, and has the buttons for all of them. */
export class ManyBar {
  readonly node = h('div', { class: 'jp-PaiJobs-many', hidden: true });

  constructor(
    private readonly trans: TranslationBundle,
    private readonly actions: { stop(entries: Entry[]): void; remove(entries: Entry[]): void }
  ) {}

  draw(chosen: Entry[]): void {
    const { trans, actions } = this;
    const { stoppable, deletable } = sorted(chosen);
    this.node.hidden = chosen.length === 0;
    const key = chosen.map(each => `${each.id} ${each.state}`).join();
    if (this.node.dataset.key === key) {
      return;
    }
    this.node.dataset.key = key;
    const stop = new Button(trans.__('Stop %1', stoppable.length), trans.__('Stop those that have not ended'), () =>
      actions.stop(stoppable)
    );
    const remove = new Button(trans.__('Delete %1', deletable.length), trans.__('Delete those that have ended'), () =>
      actions.remove(deletable)
    );
    stop.reason = stoppable.length ? '' : trans.__('All of them have ended');
    remove.reason = deletable.length ? '' : trans.__('None of them has ended');
    const said = trans._n('%1 chosen', '%1 chosen', chosen.length, chosen.length);
    this.node.replaceChildren(h('span', { role: 'status' }, said), stop.node, remove.node);
  }
}

/** Stop all; return what went wrong, in one sentence, or "". */
export function stopAll(context: IContext, entries: Entry[]): Promise<string> {
  const { api, store } = context;
  return eachOf(entries, async each => {
    if (isGroup(each)) {
      store.takeGroup(await api.stopGroup(each.id));
    } else {
      store.take(await api.stop(each.id));
    }
  });
}

/** Ask, then delete all; return what went wrong, or "". */
export async function deleteAll(context: IContext, entries: Entry[]): Promise<string> {
  const { api, store, trans } = context;
  const jobs = entries.reduce((sum, each) => sum + (isGroup(each) ? each.total : 1), 0);
  const [first] = entries;
  const what =
    entries.length > 1
      ? trans._n('Delete %1 job?', 'Delete %1 jobs?', jobs, jobs)
      : isGroup(first)
        ? trans.__('Delete %1 with its %2 jobs?', first.name, first.total)
        : trans.__('Delete %1?', first.name);
  const answer = await showDialog({
    title: what,
    body: trans.__('Records, logs and outputs go for good. Notebooks keep their snapshots.'),
    buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.warnButton({ label: trans.__('Delete') })],
    defaultButton: 0
  });
  if (!answer.button.accept) {
    return '';
  }
  return eachOf(entries, async each => {
    if (isGroup(each)) {
      await api.deleteGroup(each.id);
      store.forgetGroup(each.id);
    } else {
      await api.delete(each.id);
      store.forget(each.id);
    }
  });
}

/** Do something with each, one after the other; what fails keeps none of the others from it. */
async function eachOf(entries: Entry[], action: (entry: Entry) => Promise<void>): Promise<string> {
  const failed: string[] = [];
  for (const each of entries) {
    try {
      await action(each);
    } catch (error) {
      failed.push(errorText(error));
    }
  }
  return [...new Set(failed)].join(' ');
}

/** One notification when a job ends while its user looks elsewhere. */

import { Notification } from '@jupyterlab/apputils';

import { IContext } from './context';
import { CommandIDs } from './ids';
import { IChange, IGroupChange } from './store';
import { elapsedWords, groupLine, ICONS, plainReason, stateWord } from './words';

const SHOWN_MILLISECONDS = 10_000;

/**
 * @param listSeen - whether the list of jobs can be seen now.
 * @param stoppedHere - jobs that this page was told to stop: no news to whom did it.
 */
export function notifyOfEnds(context: IContext, listSeen: () => boolean, stoppedHere: Set<string>): void {
  const { trans, settings, store, inView, commands } = context;
  store.changed.connect((_: unknown, { id, job, ended }: IChange) => {
    // Of a group one notification is enough, at its end.
    if (!job || !ended || store.group(job.group?.id ?? '') || !settings.notifications || stoppedHere.delete(id)) {
      return;
    }
    if (!document.hidden && (inView.has(id) || listSeen())) {
      return;
    }
    const types = { succeeded: 'success', failed: 'error', stopped: 'warning' } as const;
    const why = job.state === 'succeeded' ? elapsedWords(job, context.api.now(), trans) : plainReason(job, trans);
    const head = `${ICONS[job.state]} ${job.name} ${stateWord(job.state, trans)}`;
    Notification.emit(why ? `${head}: ${why}` : head, types[job.state as 'succeeded'] ?? 'info', {
      autoClose: SHOWN_MILLISECONDS,
      actions: [
        { label: trans.__('Open'), callback: () => void commands.execute(CommandIDs.openJob, { id }) },
        { label: trans.__('Logs'), callback: () => void commands.execute(CommandIDs.openLog, { id }) }
      ]
    });
  });
  store.groupChanged.connect((_: unknown, { id, group, ended }: IGroupChange) => {
    if (group && ended && settings.notifications && !stoppedHere.delete(id) && (document.hidden || !listSeen())) {
      const said = `${ICONS[group.state]} ${group.name} ${stateWord(group.state, trans)}: ${groupLine(group, trans)}`;
      Notification.emit(said, group.state === 'succeeded' ? 'success' : 'warning', {
        autoClose: SHOWN_MILLISECONDS,
        actions: [{ label: trans.__('Open'), callback: () => void commands.execute(CommandIDs.openJobs) }]
      });
    }
  });
}

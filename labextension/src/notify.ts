/** One notification when a job ends while its user looks elsewhere. */

import { Notification } from '@jupyterlab/apputils';

import { CommandIDs, IContext } from './context';
import { IChange } from './store';
import { elapsedWords, ICONS, plainReason, stateWord } from './words';

const SHOWN_MILLISECONDS = 10_000;

/**
 * @param listSeen - whether the list of jobs can be seen now.
 * @param stoppedHere - jobs that this page was told to stop: no news to whom did it.
 */
export function notifyOfEnds(context: IContext, listSeen: () => boolean, stoppedHere: Set<string>): void {
  const { trans, settings, store, inView, commands } = context;
  store.changed.connect((_: unknown, { id, job, ended }: IChange) => {
    if (!job || !ended || !settings.notifications || stoppedHere.delete(id)) {
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
}

/** Takes a log out of the page: to the clipboard, or as a file. */

import { IContext, save, saveBlob } from './context';

/** Put a text on the clipboard; return what to say of it. */
export async function toClipboard(text: string, said: string, trans: IContext['trans']): Promise<string> {
  try {
    await navigator.clipboard.writeText(text);
    return said;
  } catch {
    return trans.__('The browser does not allow it.');
  }
}

/** Save the whole log of a task, or of all of them with the name of the task before each line. */
export async function saveLog({ api, store }: IContext, id: string, task: string): Promise<void> {
  const job = store.get(id);
  const name = job?.name ?? id;
  const one = task || (job && job.taskTotal === 1 ? `${Object.keys(job.roles)[0]}-0` : '');
  if (one) {
    save(api.logUrl(id, one), `${name}-${one}.log`);
    return;
  }
  const parts: string[] = [];
  await api.mergedLog(id, {}, new AbortController().signal, frame => {
    const lines = frame.text.replace(/\n$/, '').split('\n');
    parts.push(lines.map(line => `${frame.task}  ${line}`).join('\n') + '\n');
  });
  saveBlob(new Blob(parts, { type: 'text/plain' }), `${name}.log`);
}

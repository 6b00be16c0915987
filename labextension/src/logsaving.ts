/** Takes a log out of the page: lines and their addresses to the clipboard, all of it as a file. */

import { PageConfig, URLExt } from '@jupyterlab/coreutils';

import { errorText, IContext, save, saveBlob } from './context';
import { ILogLine, linkTo } from './linelinks';
import type { LineStore } from './lines';
import type { LogRows } from './logrows';

export class LogSaver {
  /**
   * @param shown - the job, and key of the task whose log is shown; empty: all of them.
   * @param say - says in a word what was done.
   */
  constructor(
    private readonly context: IContext,
    private readonly shown: { id: string; task: string },
    private readonly lines: LineStore,
    private readonly rows: LogRows,
    private readonly say: (text: string) => void
  ) {}

  /** The address that opens the log at a line, in this page or another. */
  linkTo(line: ILogLine): string {
    const page = URLExt.join(PageConfig.getBaseUrl(), PageConfig.getOption('appUrl') || 'lab');
    return linkTo(new URL(page, location.href).href, this.shown.id, this.shown.task, line);
  }

  /** Copy the address of the line that is marked, or of the first one in view. */
  async copyLink(): Promise<void> {
    const { line } = this.rows;
    const { trans } = this.context;
    this.say(
      line ? await toClipboard(this.linkTo(line), trans.__('Link copied.'), trans) : trans.__('There is no line yet.')
    );
  }

  /** Copy the selection, or the lines loaded. */
  async copy(): Promise<void> {
    const { trans } = this.context;
    const selected = this.rows.selected();
    const text = selected || [...this.lines.text(this.rows.prefixed)].join('');
    this.say(await toClipboard(text, selected ? trans.__('Selection copied.') : trans.__('Copied.'), trans));
  }

  /** Save the whole log as a file. */
  async download(): Promise<void> {
    try {
      await saveLog(this.context, this.shown.id, this.shown.task);
    } catch (error) {
      this.say(errorText(error));
    }
  }
}

/** Put a text on the clipboard; return what to say of it. */
async function toClipboard(text: string, said: string, trans: IContext['trans']): Promise<string> {
  try {
    await navigator.clipboard.writeText(text);
    return said;
  } catch {
    return trans.__('The browser does not allow it.');
  }
}

/** Save the whole log of a task, or of all of them with the name of the task before each line. */
async function saveLog({ api, store }: IContext, id: string, task: string): Promise<void> {
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

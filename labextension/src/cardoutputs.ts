/** The outputs of a job below its card: to open, to download, to bring into the file browser, to see in TensorBoard. */

import { PageConfig, URLExt } from '@jupyterlab/coreutils';

import { errorText, IContext } from './context';
import { Button, h, link, rich } from './dom';
import { ApiError, IJob, IOutput, IPulled } from './model';
import { byName, hasEvents, pullFolder } from './outputs';
import { isFinal, size } from './words';

const MOST_ROWS = 500;
const GO_TO = 'filebrowser:go-to-path';

export class CardOutputs {
  readonly node = h('div', { class: 'jp-PaiCard-outputs' });

  constructor(
    private readonly context: IContext,
    private readonly jobId: string
  ) {
    const { trans } = context;
    this._pull = new Button(
      trans.__('Pull'),
      trans.__('Copy all of them into a folder of the file browser'),
      () => void this._bring(false)
    );
    this._board = new Button(
      trans.__('TensorBoard'),
      trans.__('Start TensorBoard on these files and open it in a tab'),
      () => void this._open()
    );
    // What is done with all of them comes before hundreds of them.
    this.node.append(
      h('div', { class: 'jp-PaiCard-actions' }, this._pull.node, this._board.node),
      this._said,
      this._list
    );
  }

  /** Read anew what there is. */
  async read(): Promise<void> {
    const { trans, api, store } = this.context;
    const files = (await api.files(this.jobId)).sort(byName);
    const job = store.get(this.jobId);
    const isOver = !job || isFinal(job.state);
    this._list.replaceChildren(
      files.length
        ? this._files(files)
        : isOver
          ? trans.__('The job left no output files')
          : trans.__('No output files are here yet; from a cluster they come at the end')
    );
    this._pull.node.hidden = files.length === 0;
    this._board.node.hidden = !hasEvents(files);
    if (!this._isBusy) {
      this._pull.reason = isOver ? '' : trans.__('The job has not ended');
    }
  }

  private _files(files: IOutput[]): HTMLElement {
    const { trans, api } = this.context;
    const items = files.slice(0, MOST_ROWS).map(file => {
      const href = api.fileUrl(this.jobId, file.path);
      const open = trans.__('Open %1', file.path);
      const save = { href, download: file.path.split('/').pop(), 'aria-label': trans.__('Download %1', file.path) };
      return h(
        'li',
        {},
        h('a', { href, target: '_blank', rel: 'noopener', 'aria-label': open }, file.path),
        h('span', { class: 'jp-PaiCard-size' }, size(file.size)),
        h('a', save, trans.__('Download'))
      );
    });
    const rest = files.slice(MOST_ROWS);
    if (rest.length) {
      const total = rest.reduce((sum, file) => sum + file.size, 0);
      items.push(h('li', {}, trans.__('%1 more (%2)', rest.length, size(total))));
    }
    return h('ul', { class: 'jp-PaiCard-files' }, ...items);
  }

  /** Copy all into a folder of the job's name; what is there and differs is replaced only if that was said. */
  private async _bring(replace: boolean): Promise<void> {
    const { trans, api, store } = this.context;
    this._busy(trans.__('The files are being copied'));
    this._say(trans.__('Copying…'));
    try {
      const job = await store.want(this.jobId);
      const folder = pullFolder(job, PageConfig.getOption('serverRoot'));
      const pulled = await api.pull(this.jobId, folder, replace, far =>
        this._say(trans.__('%1 of %2 copied', size(far.bytes), size(far.size)))
      );
      this._tell(pulled, folder);
    } catch (error) {
      this._refused(error);
    }
    this._busy('');
  }

  private _tell(pulled: IPulled, folder: string): void {
    const { trans } = this.context;
    const { brought, unchanged } = pulled;
    const said = [
      brought || !unchanged
        ? trans._n('%1 file (%2) is now in `%3`.', '%1 files (%2) are now in `%3`.', brought, size(pulled.size), folder)
        : '',
      unchanged ? trans._n('%1 file was in `%2` already.', '%1 files were in `%2` already.', unchanged, folder) : ''
    ];
    const go = link(trans.__('Open folder'), () => this._go(folder));
    this._said.replaceChildren(...rich(said.filter(Boolean).join(' ')), ' ', go);
  }

  private _refused(error: unknown): void {
    const { trans } = this.context;
    this._say(errorText(error));
    if (error instanceof ApiError && error.code === 'files-differ') {
      const again = new Button(trans.__('Replace'), trans.__('Write over the files that differ'), () =>
        this._bring(true)
      );
      const leave = new Button(trans.__('Cancel'), trans.__('Leave them as they are'), () => this._say(''));
      this._said.append(' ', again.node, leave.node);
    }
  }

  private _go(folder: string): void {
    const { commands } = this.context;
    if (commands.hasCommand(GO_TO)) {
      commands.execute(GO_TO, { path: folder }).catch(error => this._say(errorText(error)));
    } else {
      // Notebook 7 has its file browser on a page of its own.
      window.open(URLExt.join(PageConfig.getBaseUrl(), 'tree', URLExt.encodeParts(folder)), '_blank', 'noopener');
    }
  }

  private async _open(): Promise<void> {
    const { trans, api } = this.context;
    this._board.reason = trans.__('It is starting');
    this._say(trans.__('TensorBoard is starting…'));
    try {
      const href = api.portUrl(await api.tensorboard(this.jobId));
      const attributes = { href, target: '_blank', rel: 'noopener', class: 'jp-Pai-link' };
      const again = h('a', attributes, trans.__('Open TensorBoard'));
      this._said.replaceChildren(trans.__('TensorBoard runs until nobody has used it for 30 minutes.') + ' ', again);
      window.open(href, '_blank', 'noopener'); // A browser may refuse after so long; the link stays.
    } catch (error) {
      this._say(errorText(error));
    }
    this._board.reason = '';
  }

  private _busy(reason: string): void {
    this._isBusy = reason !== '';
    this._pull.reason = reason;
  }

  private _say(text: string): void {
    this._said.replaceChildren(...rich(text));
  }

  private readonly _list = h('div');
  private readonly _said = h('div', { class: 'jp-PaiCard-note', role: 'status' });
  private readonly _pull: Button;
  private readonly _board: Button;
  private _isBusy = false;
}

/** What the panel below a card needs of a job to know whether its list is still true. */
export function outputsKey(job: IJob | undefined): string {
  return `${job?.state} ${job?.outputs.length}`;
}

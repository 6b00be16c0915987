/** The log of a job as a page: merged or of one task, tail first, only the rows drawn that can be seen. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { CommandIDs, errorText, IContext, save, saveBlob } from './context';
import { Button, h, setAttribute, setText } from './dom';
import { LineStore } from './lines';
import { LogReader } from './logreader';
import { LogRows } from './logrows';
import { LogSearch } from './logsearch';
import { IJob } from './model';
import { elapsedWords, ICONS, isFinal, plainReason, stateWord } from './words';

export interface ILogOptions {
  id: string;
  /** Key of the task; empty: all tasks together. */
  task: string;
}

export class LogView extends Widget {
  constructor(
    private readonly context: IContext,
    private readonly options: ILogOptions
  ) {
    super();
    this._trans = context.trans;
    this.addClass('jp-PaiLog');
    this._rows = new LogRows(this._lines, context.trans, follow => this._drawFollow(follow));
    this._reader = this._makeReader(context.settings.tailLines);
    this._search = new LogSearch(this._lines, context.trans, this._rows, {
      isCut: () => this._reader.isCut || this._lines.dropped > 0,
      count: (text, signal) => context.api.searchLog(options.id, text, this.options.task, signal),
      readAll: () => this._restart(null, true)
    });
    this._build();
    this._rows.wrap = context.settings.wrapLines;
    this._rows.onPlace = place => {
      context.commands
        .execute(CommandIDs.openNotebook, { id: options.id, place: { ...place } })
        .catch(error => setText(this._said, errorText(error)));
    };
    context.store.changed.connect(this._onChange, this);
    document.addEventListener('visibilitychange', this._onVisibility);
    void context.store.want(options.id).then(
      job => this._draw(job),
      error => this._fail(error)
    );
  }

  get jobId(): string {
    return this.options.id;
  }

  /** Key of the task shown; empty: all. */
  get task(): string {
    return this.options.task;
  }

  dispose(): void {
    if (!this.isDisposed) {
      this._reader.pause();
      this._search.dispose();
      this._rows.dispose();
      this.context.store.changed.disconnect(this._onChange, this);
      document.removeEventListener('visibilitychange', this._onVisibility);
      super.dispose();
    }
  }

  protected onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this._resume();
  }

  protected onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this._resume();
  }

  protected onBeforeHide(message: Message): void {
    this._reader.pause();
    super.onBeforeHide(message);
  }

  protected onResize(): void {
    this._rows.measure();
  }

  protected onActivateRequest(): void {
    this._rows.node.focus();
  }

  /** Show another task's log, or all; what is chosen is kept over a reload. */
  choose(task: string): void {
    this.options.task = task;
    this._restart(this.context.settings.tailLines);
    const job = this.context.store.get(this.options.id);
    if (job) {
      this._draw(job);
    }
    this._changed();
  }

  /** Called when what a reload should bring back has changed. */
  onOptions: (() => void) | null = null;

  private _changed(): void {
    this.onOptions?.();
  }

  private _restart(tail: number | null, keepSearch = false): void {
    this._reader.pause();
    this._lines.clear();
    this._rows.reset();
    this._ended = false;
    this._reader = this._makeReader(tail);
    if (keepSearch) {
      this._search.again();
    } else {
      this._search.clear();
    }
    this._resume();
    this._drawHead();
    this._drawEnd();
  }

  private _makeReader(tail: number | null): LogReader {
    return new LogReader(
      this.context.api,
      this.options,
      tail,
      this._lines,
      () => this.context.store.get(this.options.id),
      {
        grown: () => {
          this._rows.grow();
          this._search.grow();
        },
        begun: () => this._drawHead(),
        ended: () => {
          this._ended = true;
          this._rows.grow();
          this._search.grow();
          this._drawEnd();
        },
        broken: error => this._fail(error),
        attempt: number => this._lines.mark(this._trans.__('— attempt %1 —', number + 1))
      }
    );
  }

  private readonly _onVisibility = (): void => {
    if (document.hidden) {
      this._reader.pause();
    } else {
      this._resume();
    }
  };

  private _resume(): void {
    if (this.isVisible && !document.hidden && !this._ended) {
      this._rows.measure();
      this._reader.resume();
    }
  }

  private _onChange(_: unknown, change: { id: string; job: IJob | null }): void {
    if (change.id === this.options.id) {
      if (change.job) {
        this._draw(change.job);
      } else {
        setText(this._end, this._trans.__('The record of this job is gone.'));
      }
    }
  }

  private _build(): void {
    const trans = this._trans;
    this._select.setAttribute('aria-label', trans.__('Task'));
    this._select.addEventListener('change', () => this.choose(this._select.value));
    this._follow = toggle(trans.__('Follow'), trans.__('Stay at the end while the log grows'), on => {
      this._rows.follow = on;
    });
    const wrap = toggle(trans.__('Wrap'), trans.__('Wrap long lines'), on => {
      this._rows.wrap = on;
    });
    setAttribute(wrap, 'aria-pressed', String(this.context.settings.wrapLines));
    const copy = new Button(trans.__('Copy'), trans.__('Copy the lines loaded'), () => this._copy());
    const download = new Button(trans.__('Download'), trans.__('Save the whole log as a file'), () => {
      void this._download();
    });
    const bar = h(
      'div',
      { class: 'jp-PaiLog-bar', role: 'toolbar', 'aria-label': trans.__('Log') },
      this._select,
      this._search.node,
      this._follow,
      wrap,
      copy.node,
      download.node,
      this._said
    );
    this.node.append(bar, this._head, this._rows.node, this._end);
    this.node.addEventListener('keydown', event => {
      if (event.key === 'f' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        event.stopPropagation();
        this._search.focus();
      }
    });
    this._drawFollow(true);
  }

  private _draw(job: IJob): void {
    this._rows.job = job;
    const keys = Object.entries(job.roles).flatMap(([role, { instances }]) =>
      Array.from({ length: Math.min(instances, 1000) }, (_, index) => `${role}-${index}`)
    );
    if (this._select.dataset.keys !== keys.join()) {
      this._select.dataset.keys = keys.join();
      const all = keys.length > 1 ? this._trans.__('all tasks') : keys[0];
      const names = keys.length > 1 ? keys : [];
      this._select.replaceChildren(
        h('option', { value: '' }, all),
        ...names.map(key => h('option', { value: key }, key))
      );
    }
    this._select.value = this.options.task;
    this._rows.prefixed = !this.options.task && keys.length > 1;
    this._drawEnd();
  }

  private _drawHead(): void {
    const trans = this._trans;
    const cut = this._reader.isCut || this._lines.dropped > 0;
    this._head.hidden = !cut;
    if (cut && !this._head.hasChildNodes()) {
      const all = h('button', { type: 'button', class: 'jp-Pai-link' }, trans.__('Show from the start'));
      all.addEventListener('click', () => this._restart(null));
      this._head.append(trans.__('These are the last lines.') + ' ', all);
    }
  }

  private _drawEnd(): void {
    const job = this.context.store.get(this.options.id);
    setAttribute(this._end, 'data-state', job?.state ?? null);
    if (!job) {
      return;
    }
    const trans = this._trans;
    const said = [stateWord(job.state, trans), elapsedWords(job, this.context.api.now(), trans)];
    if (this._ended && !isFinal(job.state)) {
      setText(this._end, trans.__('The log of this task is at its end.'));
    } else if (this._ended) {
      const why = job.state === 'succeeded' ? '' : plainReason(job, trans);
      setText(this._end, `${ICONS[job.state]} ${[...said, why].filter(Boolean).join(' · ')}`);
    } else if (!isFinal(job.state)) {
      setText(this._end, `${ICONS[job.state]} ${stateWord(job.state, trans)}`);
    }
  }

  private _drawFollow(follow: boolean): void {
    if (this._follow) {
      setAttribute(this._follow, 'aria-pressed', String(follow));
    }
  }

  private _fail(error: unknown): void {
    setText(this._end, errorText(error));
  }

  private async _copy(): Promise<void> {
    const selected = this._rows.selected();
    const text = selected || [...this._lines.text(this._rows.prefixed)].join('');
    try {
      await navigator.clipboard.writeText(text);
      setText(this._said, selected ? this._trans.__('Selection copied.') : this._trans.__('Copied.'));
    } catch {
      setText(this._said, this._trans.__('The browser does not allow it.'));
    }
  }

  private async _download(): Promise<void> {
    const { api, store } = this.context;
    const { id, task } = this.options;
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

  private readonly _trans: TranslationBundle;
  private readonly _lines = new LineStore();
  private readonly _rows: LogRows;
  private readonly _search: LogSearch;
  private _reader: LogReader;
  private _follow: HTMLButtonElement | null = null;
  private _ended = false;
  private readonly _select = h('select', { class: 'jp-PaiLog-select' });
  private readonly _head = h('div', { class: 'jp-PaiLog-head', hidden: true });
  private readonly _said = h('span', { class: 'jp-PaiLog-said', role: 'status' });
  private readonly _end = h('div', { class: 'jp-PaiLog-end', role: 'status' });
}

function toggle(label: string, title: string, change: (on: boolean) => void): HTMLButtonElement {
  const button = h('button', { type: 'button', class: 'jp-Pai-button', title, 'aria-pressed': 'false' }, label);
  button.addEventListener('click', () => {
    const on = button.getAttribute('aria-pressed') !== 'true';
    setAttribute(button, 'aria-pressed', String(on));
    change(on);
  });
  return button;
}

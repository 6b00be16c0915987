/** The log of a job as a page: merged or of one task, tail first, only the rows drawn that can be seen. */

import { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { errorText, IContext } from './context';
import { CommandIDs } from './ids';
import { ILogLine } from './linelinks';
import { LineStore } from './lines';
import { failedTask, LogBar } from './logbar';
import { LogEdges } from './logedges';
import { From, LogReader } from './logreader';
import { LogRows } from './logrows';
import { LogSaver } from './logsaving';
import { LogSearch } from './logsearch';
import { LogTimes } from './logtimes';
import { IJob } from './model';
import { plainReason } from './words';

export interface ILogOptions {
  id: string;
  /** Key of the task; empty: all tasks together. */
  task: string;
  /** The line to open it at; without one it opens at the end. */
  line?: ILogLine | null;
}

export class LogView extends Widget {
  constructor(
    private readonly context: IContext,
    private readonly options: ILogOptions
  ) {
    super();
    const { settings, trans } = context;
    this.addClass('jp-PaiLog');
    this._rows = new LogRows(this._lines, trans, follow => this._bar.drawFollow(follow));
    this._times = new LogTimes(context.api, options.id, () => this._rows.draw());
    this._search = new LogSearch(this._lines, trans, this._rows, {
      isCut: () => this._isCut(),
      find: (text, most, signal) => context.api.searchLog(options.id, text, this.options.task, most, signal),
      readAll: () => this._restart({ tail: null }, true),
      go: line => this.goTo(line)
    });
    this._saver = new LogSaver(context, options, this._lines, this._rows, text => this._bar.say(text));
    this._bar = new LogBar(trans, this._search.node, this._actions(), { wrap: settings.wrapLines, fold: true });
    this._edges = new LogEdges(context, {
      fromStart: () => this._restart({ tail: null }),
      readOn: () => this._readOn(),
      last: () => this._restart({ tail: settings.tailLines }, true)
    });
    this._reader = this._makeReader(options.line ? { line: options.line } : { tail: settings.tailLines });
    this._wanted = options.line ?? null;
    this._build();
    this._rows.canFollow = !options.line;
    this._rows.reset();
    this._rows.wrap = settings.wrapLines;
    context.store.changed.connect(this._onChange, this);
    document.addEventListener('visibilitychange', this._onVisibility);
    void context.store.want(options.id).then(
      job => this._begin(job),
      error => this._begin(null, error)
    );
  }

  get jobId(): string {
    return this.options.id;
  }

  /** Key of the task shown; empty: all. */
  get task(): string {
    return this.options.task;
  }

  /** The line that somebody went to, to be shown again after a reload. */
  get line(): ILogLine | null {
    return this.options.line ?? null;
  }

  dispose(): void {
    if (!this.isDisposed) {
      this._reader.pause();
      this._search.dispose();
      this._times.dispose();
      this._rows.dispose();
      this.context.store.changed.disconnect(this._onChange, this);
      document.removeEventListener('visibilitychange', this._onVisibility);
      super.dispose();
    }
  }

  /** Read, now that it is known how many tasks there are: lines are folded as they come. */
  private _begin(job: IJob | null, error?: unknown): void {
    this._isKnown = true;
    if (job) {
      this._draw(job);
    } else {
      this._fail(error);
    }
    this._resume();
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
    this._restart({ tail: this.context.settings.tailLines });
    const job = this.context.store.get(this.options.id);
    if (job) {
      this._draw(job);
    }
  }

  /** Go to a line, wherever it is: where it is not loaded, the log is read from there on. */
  goTo(line: ILogLine): void {
    if (this.options.task && this.options.task !== line.task) {
      this.choose('');
    }
    const found = this._lines.find(line.task, line.attempt, line.offset);
    if (found === null) {
      this._restart({ line }, true);
      return;
    }
    this._wanted = null;
    this.options.line = line;
    this._rows.reveal(found);
    this.onOptions?.();
  }

  /** Called when what a reload should bring back has changed. */
  onOptions: (() => void) | null = null;

  private _isCut(): boolean {
    return this._reader.isCut || this._reader.isStopped || this._lines.dropped > 0;
  }

  /** Read anew from somewhere else. */
  private _restart(from: From, keepSearch = false): void {
    const line = 'line' in from ? from.line : null;
    this._reader.pause();
    this._lines.clear();
    this._lines.foldsRanks = this._rows.prefixed && this._folds;
    this.options.line = this._wanted = line;
    this._rows.canFollow = !line;
    this._rows.reset();
    this._ended = false;
    this._reader = this._makeReader(from);
    if (line) {
      this._search.linesChanged();
    } else if (keepSearch) {
      this._search.again();
    } else {
      this._search.clear();
    }
    this._resume();
    this._drawEdges();
    this.onOptions?.();
  }

  private _makeReader(from: From): LogReader {
    return new LogReader(
      this.context.api,
      this.options,
      from,
      this._lines,
      () => this.context.store.get(this.options.id),
      {
        grown: () => {
          this._rows.draw();
          this._drawEdges();
          this._search.grow();
          this._lookForWanted();
        },
        begun: () => this._drawEdges(),
        ended: () => {
          this._ended = true;
          this._rows.canFollow = true;
          this._rows.draw();
          this._search.grow();
          this._lookForWanted(true);
          this._drawFailure();
          this._drawEdges();
        },
        broken: error => this._fail(error),
        attempt: number => this._lines.mark(this.context.trans.__('— attempt %1 —', number + 1)),
        stopped: () => {
          this._lookForWanted(true);
          this._drawEdges();
        }
      }
    );
  }

  /** Go to the line that the log was read for, once it is there. */
  private _lookForWanted(isLast = false): void {
    const line = this._wanted;
    if (!line) {
      return;
    }
    const found = this._lines.find(line.task, line.attempt, line.offset);
    if (found !== null) {
      this._wanted = null;
      this._rows.reveal(found);
      this._drawFailure();
    } else if (isLast) {
      this._wanted = null;
      this._bar.say(this.context.trans.__('That line is not in the log.'));
    }
  }

  private readonly _onVisibility = (): void => {
    if (document.hidden) {
      this._reader.pause();
    } else {
      this._resume();
    }
  };

  private _resume(): void {
    if (this._isKnown && this.isVisible && !document.hidden && !this._ended) {
      this._rows.measure();
      this._reader.resume();
    }
  }

  private _onChange(_: unknown, change: { id: string; job: IJob | null }): void {
    if (change.id === this.options.id) {
      if (change.job) {
        this._draw(change.job);
      } else {
        this._edges.say(this.context.trans.__('The record of this job is gone.'));
      }
    }
  }

  private _actions(): ConstructorParameters<typeof LogBar>[2] {
    return {
      choose: task => this.choose(task),
      follow: on => this._follow(on),
      times: on => {
        this._rows.painter.written = on ? line => this._times.of(line) : null;
        this._rows.timed = on;
      },
      wrap: on => {
        this._rows.wrap = on;
      },
      fold: on => {
        this._folds = on;
        const line = this._rows.follow ? null : this._rows.line;
        this._restart(line ? { line } : { tail: this.context.settings.tailLines }, true);
      },
      goToFailure: () => void this._goToFailure(),
      copyLink: () => void this._saver.copyLink(),
      copy: () => void this._saver.copy(),
      download: () => void this._saver.download()
    };
  }

  private _build(): void {
    const { head, end } = this._edges;
    this.node.append(this._bar.node, this._search.hits.node, head, this._rows.node, end);
    this._rows.painter.href = line => this._saver.linkTo(line);
    this._rows.onPlace = place => {
      this.context.commands
        .execute(CommandIDs.openNotebook, { id: this.options.id, place: { ...place } })
        .catch(error => this._bar.say(errorText(error)));
    };
    this._rows.onEnd = () => this._readOn();
    this._rows.node.addEventListener('keydown', event => {
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
      if (event.target === this._rows.node && isPlain && this._bar.press(event.key)) {
        event.preventDefault();
      }
    });
    this.node.addEventListener('keydown', event => {
      if (event.key === 'f' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        event.stopPropagation();
        this._search.focus();
      }
    });
  }

  private _follow(on: boolean): void {
    if (on && this._reader.isStopped) {
      this._restart({ tail: this.context.settings.tailLines }, true);
    } else {
      this._rows.canFollow = true;
      this._rows.follow = on;
    }
  }

  private _readOn(): void {
    if (this._reader.isStopped) {
      this._reader.readOn();
    } else if (!this._wanted) {
      this._follow(true);
    }
    this._drawEdges();
  }

  private _draw(job: IJob): void {
    const several = job.taskTotal > 1 && !this.options.task;
    this._rows.painter.job = job;
    this._bar.drawTasks(job, this.options.task);
    this._rows.prefixed = several;
    this._lines.foldsRanks = several && this._folds;
    this._drawFailure();
    this._drawEdges();
  }

  private _drawFailure(): void {
    const job = this.context.store.get(this.options.id);
    const task = failedTask(job);
    if (!job || !task) {
      this._rows.painter.failure = null;
      return;
    }
    const why = job.failedTask?.message || plainReason(job, this.context.trans);
    const said = this.context.trans.__('✕ failed first: %1', why.replace(/`/g, ''));
    const at = this._failedAt;
    const line = this._ended
      ? this._lines.lastOf(task, job.attempt)
      : at && this._lines.find(at.task, at.attempt, at.offset);
    this._rows.painter.failure = { task, attempt: job.attempt, said, line };
    this._rows.draw();
  }

  private _drawEdges(): void {
    this._edges.draw(this.context.store.get(this.options.id), {
      isCut: this._reader.isCut || this._lines.dropped > 0,
      isNear: !!this.options.line,
      isStopped: this._reader.isStopped,
      ended: this._ended,
      lines: this._lines.lineCount
    });
  }

  private _fail(error: unknown): void {
    this._edges.say(errorText(error));
  }

  private async _goToFailure(): Promise<void> {
    const task = failedTask(this.context.store.get(this.options.id));
    try {
      const line = task ? await this.context.api.lastLine(this.options.id, task) : null;
      if (line) {
        this._failedAt = line;
        this.goTo(line);
        this._drawFailure();
        this._rows.node.focus();
      } else {
        this._bar.say(this.context.trans.__('%1 printed nothing.', task ?? ''));
      }
    } catch (error) {
      this._bar.say(errorText(error));
    }
  }

  private readonly _lines = new LineStore();
  private readonly _rows: LogRows;
  private readonly _search: LogSearch;
  private readonly _times: LogTimes;
  private readonly _saver: LogSaver;
  private readonly _bar: LogBar;
  private _reader: LogReader;
  private _ended = false;
  private _isKnown = false;
  /** Whether lines that several tasks print alike are shown once. */
  private _folds = true;
  /** The last line of the task that failed first, once somebody has asked for it. */
  private _failedAt: ILogLine | null = null;
  /** The line that is still to be gone to. */
  private _wanted: ILogLine | null = null;
  private readonly _edges: LogEdges;
}

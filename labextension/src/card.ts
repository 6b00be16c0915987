/** The live card of a job, below a cell and as a page of its own. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { CardPanel } from './cardpanel';
import { metricsNodes } from './cardmetrics';
import { codeAt, localTime, outputsText, shown, usageText } from './cardtext';
import { errorText, IContext } from './context';
import { Button, h, rich, setAttribute, setText } from './dom';
import { CommandIDs } from './ids';
import { LoginBar } from './loginbar';
import { ICellPlace, IJob } from './model';
import { RecentLines } from './recent';
import {
  duration,
  elapsed,
  elapsedWords,
  ICONS,
  isFinal,
  measured,
  number,
  placedReason,
  progress,
  roles,
  stateWord
} from './words';

const TICK_MILLISECONDS = 1000;
const LAST_LINES = 8;
const MOST_METRICS = 6;
const HASH = 12;

/** Draws one job, and follows it while it can be seen. */
export class JobCard extends Widget {
  constructor(
    private readonly context: IContext,
    readonly jobId: string
  ) {
    super();
    this.addClass('jp-PaiCard');
    this._trans = context.trans;
    this._panel = new CardPanel(context, jobId, () => this._drawButtons());
    this._login = new LoginBar(context, () => context.store.retry());
    this._recent = new RecentLines(context.api, jobId, () => this._drawLines());
    this._buttons = this._makeButtons();
    this._build();
    context.store.changed.connect(this._onChange, this);
    context.store.connectionChanged.connect(this._draw, this);
    this._watch = new IntersectionObserver(entries => this._see(entries[entries.length - 1].isIntersecting));
    document.addEventListener('visibilitychange', this._onVisibility);
    this._draw();
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._see(false);
    this._watch.disconnect();
    document.removeEventListener('visibilitychange', this._onVisibility);
    this.context.store.changed.disconnect(this._onChange, this);
    this.context.store.connectionChanged.disconnect(this._draw, this);
    super.dispose();
  }

  protected onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this._watch.observe(this.node);
  }

  protected onBeforeDetach(message: Message): void {
    this._watch.unobserve(this.node);
    this._see(false);
    super.onBeforeDetach(message);
  }

  private get _job(): IJob | undefined {
    return this.context.store.get(this.jobId);
  }

  private _onChange(_: unknown, change: { id: string }): void {
    if (change.id === this.jobId && this._frame === 0) {
      // Many changes before the next picture are one change.
      this._frame = requestAnimationFrame(() => {
        this._frame = 0;
        this._draw();
        this._panel.refresh();
      });
      if (document.hidden) {
        cancelAnimationFrame(this._frame);
        this._frame = 0;
        this._draw();
      }
    }
  }

  private readonly _onVisibility = (): void => this._see(this._seen);

  private _see(seen: boolean): void {
    this._seen = seen;
    const { inView } = this.context;
    if (seen && !document.hidden) {
      inView.add(this.jobId);
    } else {
      inView.delete(this.jobId);
    }
    clearInterval(this._ticker);
    if (inView.has(this.jobId)) {
      this._tick();
      this._ticker = window.setInterval(() => this._tick(), TICK_MILLISECONDS);
    }
    this._follow();
  }

  private _follow(): void {
    const job = this._job;
    this._recent.follow(job?.state === 'running' && this._seen && !document.hidden);
  }

  private _tick(): void {
    const job = this._job;
    if (job) {
      setText(this._clock, elapsedWords(job, this.context.api.now(), this._trans));
      this._drawLeft(job);
    }
  }

  private _makeButtons(): Record<string, Button> {
    const { _trans: trans, context, jobId } = this;
    const run = (command: string): void => {
      void this._do(() => context.commands.execute(command, { id: jobId }));
    };
    return {
      logs: new Button(trans.__('Logs'), trans.__('Open the log'), () => run(CommandIDs.openLog)),
      tasks: new Button(trans.__('Tasks'), trans.__('Show all tasks'), () => this._panel.toggle('tasks')),
      outputs: new Button(trans.__('Outputs'), trans.__('Show the output files'), () => this._panel.toggle('outputs')),
      ports: new Button(trans.__('Ports'), trans.__('Open what the tasks serve'), () => this._panel.toggle('ports')),
      changes: new Button(trans.__('Changes'), trans.__('What changed since the last run'), () =>
        this._panel.toggle('changes')
      ),
      clone: new Button(
        trans.__('Clone & edit'),
        trans.__('Open a form that starts from this job'),
        () => void this._do(() => context.commands.execute(CommandIDs.form, { job: jobId }))
      ),
      stop: new Button(trans.__('Stop'), trans.__('Stop the job; its record and logs stay'), () =>
        run(CommandIDs.stop)
      ),
      retry: new Button(trans.__('Retry'), trans.__('Submit the same document and package as a new job'), () =>
        this._retry()
      ),
      copy: new Button(trans.__('Copy id'), trans.__('Copy the id to the clipboard'), () =>
        this._do(async () => {
          await context.commands.execute(CommandIDs.copyId, { id: jobId });
          return trans.__('Copied.');
        })
      ),
      notebook: new Button(trans.__('Notebook'), trans.__('Go to the cell that submitted'), () =>
        run(CommandIDs.openNotebook)
      ),
      exported: new Button(trans.__('Export YAML'), trans.__('Save the job document'), () =>
        run(CommandIDs.exportDocument)
      )
    };
  }

  private _build(): void {
    const { _buttons: b } = this;
    setAttribute(this.node, 'role', 'group');
    this.node.append(
      h('div', { class: 'jp-PaiCard-head' }, this._icon, this._state, this._name, this._where, this._clock),
      this._line,
      this._login.node,
      this._metrics,
      this._place,
      this._lines,
      this._advice,
      h(
        'div',
        { class: 'jp-PaiCard-actions' },
        b.logs.node,
        b.tasks.node,
        b.outputs.node,
        b.ports.node,
        b.changes.node,
        b.notebook.node,
        h('span', { class: 'jp-PaiCard-gap' }),
        b.stop.node,
        b.retry.node,
        b.clone.node,
        b.copy.node,
        b.exported.node
      ),
      this._note,
      this._panel.node,
      this._rows
    );
  }

  private _draw(): void {
    const job = this._job;
    if (!job) {
      return;
    }
    const trans = this._trans;
    setAttribute(this.node, 'data-state', job.state);
    setAttribute(this.node, 'aria-label', trans.__('Job %1', job.name));
    setText(this._icon, ICONS[job.state] ?? '○');
    setText(this._state, stateWord(job.state, trans));
    setText(this._name, job.name);
    setText(this._where, [job.profile, ...roles(job)].join(' · '));
    setText(this._clock, elapsedWords(job, this.context.api.now(), trans));
    this._drawLine(job);
    this._drawMetrics(job);
    this._drawPlace(job);
    this._drawLines();
    this._fill(this._advice, job.advice, () => [h('span', { 'aria-hidden': 'true' }, '→ '), ...rich(job.advice)]);
    this._drawButtons();
    this._drawRows(job);
    this._follow();
  }

  private _drawLine(job: IJob): void {
    const trans = this._trans;
    let said = placedReason(job, trans);
    void this._login.mind(job);
    if (job.staleSince) {
      said = [said, trans.__('`%1` cannot be reached', job.profile)].filter(Boolean).join(' · ');
    }
    if (this.context.store.connection === 'lost') {
      said = [said, trans.__('not connected, trying again')].filter(Boolean).join(' · ');
    }
    this._fill(this._line, said, () => rich(said));
  }

  private _drawMetrics(job: IJob): void {
    const far = progress(job);
    const names = measured(job).slice(0, MOST_METRICS);
    const { last = {}, series = {} } = job.metrics ?? {};
    const key = JSON.stringify([far, names.map(name => [name, last[name], series[name]?.length])]);
    this._fill(this._metrics, far || names.length ? key : '', () => [
      ...metricsNodes(job, far, names),
      far && this._left
    ]);
    this._drawLeft(job);
  }

  private _drawLeft(job: IJob): void {
    const far = job.state === 'running' ? progress(job) : null;
    const spent = elapsed(job, this.context.api.now());
    const guessed = far && spent && far.done < far.total ? (spent / far.done) * (far.total - far.done) : 0;
    const left = far?.left ?? guessed;
    setText(this._left, left > 5 ? this._trans.__('~ %1 left', duration(Math.round(left))) : '');
  }

  private _drawLines(): void {
    const job = this._job;
    const failed = job?.failedTask;
    const lines = failed
      ? failed.lastLines.slice(-LAST_LINES).map(text => ({ task: `${failed.role}-${failed.index}`, text }))
      : job?.state === 'running'
        ? this._recent.lines
        : [];
    setAttribute(this._lines, 'data-live', job?.state === 'running' ? 'true' : null);
    const isLive = job?.state === 'running';
    this._fill(this._lines, lines.length || isLive ? JSON.stringify(lines) : '', () =>
      lines.length
        ? lines.map(({ task, text }) =>
            h('div', {}, h('span', { class: 'jp-PaiCard-task', title: task }, task), h('span', {}, shown(text)))
          )
        : [h('span', { class: 'jp-PaiCard-none' }, this._trans.__('no output yet'))]
    );
  }

  /** Say where in the notebook it failed, with a link to there. */
  private _drawPlace(job: IJob): void {
    const place = job.failedTask?.place;
    const trans = this._trans;
    this._fill(this._place, place ? JSON.stringify(place) : '', () => {
      const to = place as ICellPlace;
      const where = to.cell
        ? trans.__('cell %1, line %2', to.cell, to.line)
        : trans.__('cell [%1], line %2', to.run, to.line);
      const said = to.notebook && !job.notebook?.endsWith(`/${to.notebook}`) ? `${to.notebook}, ${where}` : where;
      const link = h('button', { type: 'button', class: 'jp-Pai-link', title: trans.__('Go to the cell') }, said);
      link.addEventListener('click', () => {
        void this._do(() =>
          this.context.commands.execute(CommandIDs.openNotebook, { id: this.jobId, place: { ...to } })
        );
      });
      const code = codeAt(job, to);
      return [link, code && h('code', {}, code)];
    });
  }

  private _drawButtons(): void {
    const job = this._job;
    if (!job) {
      return;
    }
    const trans = this._trans;
    const b = this._buttons;
    const away = job.mine ? '' : trans.__('It runs on %1', job.host ?? trans.__('another host'));
    const over = isFinal(job.state) ? trans.__('The job has ended') : '';
    const stopping = job.reason === 'stopping' ? trans.__('The job is being stopped') : '';
    b.notebook.node.hidden = !job.notebook || !!this.node.closest('.jp-PaiOutput');
    b.stop.reason = over || stopping || away;
    b.retry.reason = isFinal(job.state) ? '' : trans.__('The job has not ended');
    b.outputs.reason =
      job.state === 'waiting'
        ? trans.__('The job has not begun')
        : isFinal(job.state) && !job.outputs.length
          ? trans.__('The job left no output files')
          : '';
    b.ports.node.hidden = job.state !== 'running' || !Object.keys(job.ports ?? {}).length;
    b.ports.reason = away;
    b.changes.node.hidden = !this._panel.previous;
    for (const kind of ['tasks', 'outputs', 'ports', 'changes'] as const) {
      setAttribute(b[kind].node, 'aria-expanded', String(this._panel.shown === kind));
    }
  }

  private _drawRows(job: IJob): void {
    const trans = this._trans;
    const parameters = Object.entries(job.parameters ?? {});
    const rows: [string, string][] = [
      [trans.__('parameters'), parameters.map(([name, value]) => `${name} = ${number(value)}`).join(', ')],
      [trans.__('secrets'), job.secretNames.join(', ')],
      [trans.__('uses'), job.state === 'running' ? usageText(job.usage, trans) : ''],
      [trans.__('package'), (job.packageSha256 ?? '').slice(0, HASH)],
      [trans.__('outputs'), outputsText(job.outputs, trans)],
      [trans.__('attempt'), job.attempt ? String(job.attempt + 1) : ''],
      job.endedAt ? [trans.__('ended'), localTime(job.endedAt)] : [trans.__('submitted'), localTime(job.submittedAt)]
    ];
    const filled = rows.filter(([, value]) => value !== '');
    this._fill(this._rows, JSON.stringify(filled), () =>
      filled.flatMap(([label, value]) => [h('dt', {}, label), h('dd', {}, value)])
    );
  }

  private async _retry(): Promise<void> {
    await this._do(async () => {
      const job = (await this.context.commands.execute(CommandIDs.retry, { id: this.jobId })) as IJob;
      const open = h('button', { type: 'button', class: 'jp-Pai-link' }, job.name);
      open.addEventListener('click', () => void this.context.commands.execute(CommandIDs.openJob, { id: job.id }));
      this._note.replaceChildren(this._trans.__('Submitted as') + ' ', open);
      this._note.hidden = false;
    });
  }

  /** Do something and say what became of it. */
  private async _do(action: () => Promise<unknown>): Promise<void> {
    this._note.hidden = true;
    try {
      const said = await action();
      if (typeof said === 'string') {
        setText(this._note, said);
        this._note.hidden = false;
      }
    } catch (error) {
      this._note.replaceChildren(...rich(errorText(error)));
      this._note.hidden = false;
    }
  }

  /** Fill a part anew if what it says has changed; empty parts take no room. */
  private _fill(part: HTMLElement, key: string, content: () => (Node | string | null | false)[]): void {
    if (part.dataset.key !== key) {
      part.dataset.key = key;
      part.hidden = key === '';
      part.replaceChildren(...(key === '' ? [] : content()).filter((child): child is Node | string => !!child));
    }
  }

  private readonly _trans: TranslationBundle;
  private readonly _panel: CardPanel;
  private readonly _login: LoginBar;
  private readonly _recent: RecentLines;
  private readonly _buttons: Record<string, Button>;
  private readonly _watch: IntersectionObserver;
  private _seen = false;
  private _frame = 0;
  private _ticker = 0;
  private readonly _icon = h('span', { class: 'jp-PaiState-icon', 'aria-hidden': 'true' });
  private readonly _state = h('strong', { class: 'jp-PaiCard-state', role: 'status' });
  private readonly _name = h('code', { class: 'jp-PaiCard-name' });
  private readonly _where = h('span', { class: 'jp-PaiCard-where' });
  private readonly _clock = h('span', { class: 'jp-PaiCard-clock' });
  private readonly _line = h('div', { class: 'jp-PaiCard-line' });
  private readonly _metrics = h('div', { class: 'jp-PaiCard-metrics' });
  private readonly _left = h('span', { class: 'jp-PaiCard-left' });
  private readonly _place = h('div', { class: 'jp-PaiCard-place' });
  private readonly _lines = h('div', { class: 'jp-PaiCard-lines' });
  private readonly _advice = h('div', { class: 'jp-PaiCard-advice' });
  private readonly _note = h('div', { class: 'jp-PaiCard-note', role: 'status', hidden: true });
  private readonly _rows = h('dl', { class: 'jp-PaiCard-rows' });
}

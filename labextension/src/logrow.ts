/** Draws one row of a log: when, who, and the text with its colours, hits and links. */

import type { TranslationBundle } from '@jupyterlab/translation';

import { cut, hasControls, ISpan, spans } from './ansi';
import { IRow, widthOf } from './block';
import { h, setAttribute, setText } from './dom';
import { ILogLine } from './linelinks';
import { LineStore } from './lines';
import { clock, fullTime, IWritten } from './logtimes';
import { IJob } from './model';
import { placeIn } from './places';
import { splitAddresses } from './weblinks';

/** Without wrapping, so many characters of a line are drawn; nobody scrolls further to the right. */
export const WIDEST = 20_000;
const COLOURS = 6;

/** The task that failed first, and its last line. */
export interface IFailure {
  task: string;
  attempt: number;
  said: string;
  /** Number of the line; null while it is not known. */
  line: number | null;
}

export class RowPainter {
  constructor(
    private readonly lines: LineStore,
    private readonly trans: TranslationBundle
  ) {}

  /** The job that the lines are of: what a line names is looked up in it. */
  job: IJob | undefined;
  /** Text to mark, in lower case. */
  wanted = '';
  /** Columns of a row; 0: lines are not wrapped. */
  columns = 0;
  /** Whether each row names its task. */
  prefixed = false;
  /** Number of the line that is meant, counted from the first that was ever read. */
  current = -1;
  failure: IFailure | null = null;
  /** Whether places in notebooks are links. */
  linksPlaces = false;
  /** Tells when a line was written; null: no times are shown. */
  written: ((line: ILogLine) => IWritten | null | undefined) | null = null;
  /** Makes the address of a line. */
  href: (line: ILogLine) => string = () => '#';

  /** Make the element of a row. */
  make(): HTMLElement {
    return h(
      'div',
      { class: 'jp-PaiLog-row' },
      h('a', { class: 'jp-PaiLog-time', tabindex: -1 }),
      h('span', { class: 'jp-PaiLog-task' }),
      h('span', { class: 'jp-PaiLog-text' })
    );
  }

  /** Draw a row into an element; nothing is touched if it shows the same already. */
  paint(element: HTMLElement, row: IRow): void {
    const isCurrent = row.line === this.current && !row.isCopy;
    const [runs, more] = row.isCopy ? [[{ text: row.text.slice(0, WIDEST), style: '' }], 0] : this._shown(row);
    const line = this.lineOf(row);
    const written = this.written && line && row.piece === 0 ? this.written(line) : null;
    const failed = this._failed(row);
    const isOpen = row.copies > 0 && this.lines.isOpen(row.line);
    const known = element as HTMLElement & { paiKey?: string };
    const { piece, task, copies, isCopy } = row;
    const looks = [piece > 0, isCurrent, isCopy, failed, isOpen, copies, this.prefixed, this.wanted, more];
    const key = JSON.stringify([row.line, task, row.offset, written, this.written !== null, looks, runs]);
    if (known.paiKey === key) {
      return;
    }
    known.paiKey = key;
    element.className = [
      'jp-PaiLog-row',
      row.piece ? 'jp-mod-more' : '',
      row.task < 0 ? 'jp-mod-mark' : '',
      row.isCopy ? 'jp-mod-copy' : '',
      failed !== null ? 'jp-mod-failed' : '',
      isCurrent ? 'jp-mod-current' : ''
    ].join(' ');
    setAttribute(element, 'aria-current', isCurrent ? 'true' : null);
    element.dataset.line = String(row.line);
    const [time, name, content] = element.children as unknown as [HTMLElement, HTMLElement, HTMLElement];
    this._time(time, line, written, row.piece);
    this._name(name, row, isOpen, failed !== null);
    const isCut = !row.isCopy && !this._isLastPiece(row);
    content.replaceChildren(...runs.flatMap((run, at) => this._run(run, isCut && at === runs.length - 1)));
    if (more) {
      const said = this.trans.__('… %1 more characters: wrap the lines, or download', more);
      content.append(h('span', { class: 'jp-PaiLog-rest' }, said));
    }
    if (failed) {
      content.append(h('span', { class: 'jp-PaiLog-failure' }, failed));
    }
  }

  /** The line of a row as links name it; null for a line of ours. */
  lineOf(row: IRow): ILogLine | null {
    return row.task < 0 ? null : { task: this.lines.tasks[row.task], attempt: row.attempt, offset: row.offset };
  }

  /** Of a row of the task that failed first, what is said behind its last line; null for other rows. */
  private _failed(row: IRow): string | null {
    const { failure } = this;
    if (!failure || row.task < 0 || row.attempt !== failure.attempt) {
      return null;
    }
    const isLast = row.line === failure.line && !row.isCopy && this._isLastPiece(row);
    return this.lines.tasks[row.task] === failure.task || isLast ? (isLast ? failure.said : '') : null;
  }

  private _isLastPiece(row: IRow): boolean {
    return !this.columns || (row.piece + 1) * this.columns >= widthOf(row.text);
  }

  private _time(
    element: HTMLElement,
    line: ILogLine | null,
    written: IWritten | null | undefined,
    piece: number
  ): void {
    const { trans } = this;
    setText(element, written ? clock(written.since) : this.written && line && piece === 0 ? '–' : '');
    setAttribute(element, 'href', line && this.written ? this.href(line) : null);
    let title = written === null ? trans.__('The backend of this job keeps no times') : trans.__('Asking for the time');
    if (written) {
      const since = fullTime(written.since);
      title =
        written.before === null
          ? trans.__('Written at %1 or after it', since)
          : trans.__('Written at %1 or after it, before %2', since, fullTime(written.before));
    }
    setAttribute(element, 'title', this.written && line ? title : null);
  }

  private _name(element: HTMLElement, row: IRow, isOpen: boolean, isFailed: boolean): void {
    element.dataset.colour = String(row.task % COLOURS);
    if (!this.prefixed || row.task < 0 || row.piece > 0) {
      element.replaceChildren();
      return;
    }
    const task = this.lines.tasks[row.task];
    if (!row.copies) {
      element.replaceChildren((isFailed ? '✕ ' : '') + task);
      return;
    }
    const count = row.copies + 1;
    const label = this.trans._n('%1 task prints this line', '%1 tasks print this line', count, count);
    // No stop of Tab: there may be one in each of a million lines. Enter opens that of the line that is marked.
    const button = h(
      'button',
      { type: 'button', tabindex: -1, class: 'jp-PaiLog-copies', 'aria-label': label, 'aria-expanded': String(isOpen) },
      `${isOpen ? '▾' : '▸'} ×${count}`
    );
    const names = this.lines.printers(row.line);
    const some = names.slice(0, 20).join(', ') + (names.length > 20 ? ', …' : '');
    setAttribute(button, 'title', `${label}: ${some}`);
    element.replaceChildren(button);
  }

  /** What is to be seen of a row, and how many characters of its line are not. */
  private _shown(row: IRow): [ISpan[], number] {
    const { text } = row;
    const start = row.piece * this.columns;
    const end = this.columns ? start + this.columns : WIDEST;
    if (!hasControls(text)) {
      return [[{ text: text.slice(start, end), style: '' }], this.columns ? 0 : Math.max(0, text.length - WIDEST)];
    }
    return [this.columns ? cut(spans(text), start, end) : spans(text), 0];
  }

  private _run({ text, style }: ISpan, isCut: boolean): (Node | string)[] {
    const found = text.length <= WIDEST && this.linksPlaces ? placeIn(text, this.job) : null;
    if (found) {
      const link = h(
        'a',
        {
          href: '#',
          class: 'jp-Pai-link',
          'data-place': JSON.stringify(found.place),
          title: this.trans.__('Go to the cell')
        },
        text.slice(found.start, found.end)
      );
      const before = this._plain({ text: text.slice(0, found.start), style }, false);
      return [...before, link, ...this._plain({ text: text.slice(found.end), style }, isCut)];
    }
    return this._plain({ text, style }, isCut);
  }

  private _plain({ text, style }: ISpan, isCut: boolean): (Node | string)[] {
    const parts = splitAddresses(text, isCut).flatMap(part => {
      const marked = this.wanted && text.length <= WIDEST ? this._marked(part.text) : [part.text];
      const attributes = { href: part.text, target: '_blank', rel: 'noopener noreferrer', class: 'jp-Pai-link' };
      return part.isAddress ? [h('a', attributes, ...marked)] : marked;
    });
    return style ? [h('span', { class: style }, ...parts)] : parts;
  }

  private _marked(text: string): (Node | string)[] {
    const lower = text.toLowerCase();
    const found: (Node | string)[] = [];
    let from = 0;
    if (lower.length === text.length) {
      for (let at = lower.indexOf(this.wanted); at >= 0; at = lower.indexOf(this.wanted, from)) {
        found.push(text.slice(from, at), h('mark', {}, text.slice(at, at + this.wanted.length)));
        from = at + this.wanted.length;
      }
    }
    return [...found, text.slice(from)];
  }
}

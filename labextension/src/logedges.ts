/** What is said above and below the lines of a log: whether there are more of them, and why it ended. */

import { h, link, setAttribute, setText } from './dom';
import { IContext } from './context';
import { IJob } from './model';
import { elapsedWords, ICONS, isFinal, plainReason, stateWord } from './words';

/** What somebody can do there. */
export interface IEdgeActions {
  fromStart(): void;
  readOn(): void;
  last(): void;
}

/** How far a log was read. */
export interface IExtent {
  /** Whether there are lines before those loaded. */
  isCut: boolean;
  /** Whether somebody went to a line, so that those loaded are not the last ones. */
  isNear: boolean;
  /** Whether there are lines after those loaded that were not read yet. */
  isStopped: boolean;
  /** Whether it is at its end. */
  ended: boolean;
  lines: number;
}

export class LogEdges {
  readonly head = h('div', { class: 'jp-PaiLog-head', hidden: true });
  readonly end = h('div', { class: 'jp-PaiLog-end', role: 'status' });

  constructor(
    private readonly context: IContext,
    actions: IEdgeActions
  ) {
    const { trans } = context;
    this.head.append(this._said, ' ', link(trans.__('Show from the start'), actions.fromStart));
    this._more = h(
      'span',
      {},
      trans.__('More lines follow.') + ' ',
      link(trans.__('Read on'), actions.readOn),
      ' · ',
      link(trans.__('Show the last lines'), actions.last)
    );
  }

  draw(job: IJob | undefined, extent: IExtent): void {
    const { trans } = this.context;
    this.head.hidden = !extent.isCut;
    const said = extent.isNear ? trans.__('There are lines before these.') : trans.__('These are the last lines.');
    setText(this._said, said);
    setAttribute(this.end, 'data-state', job?.state ?? null);
    if (extent.isStopped) {
      if (this._more.parentNode !== this.end) {
        this.end.replaceChildren(this._more);
      }
    } else if (job) {
      setText(this.end, this._endWords(job, extent));
    }
  }

  say(text: string): void {
    setText(this.end, text);
  }

  private _endWords(job: IJob, { ended, lines }: IExtent): string {
    const { api, trans } = this.context;
    if (!isFinal(job.state)) {
      const why = job.state === 'waiting' ? plainReason(job, trans) : lines ? '' : trans.__('no output yet');
      const state = [stateWord(job.state, trans), why].filter(Boolean).join(' · ');
      return ended ? trans.__('The log of this task is at its end.') : `${ICONS[job.state]} ${state}`;
    }
    if (!ended) {
      return trans.__('Reading …');
    }
    const why = job.state === 'succeeded' ? '' : plainReason(job, trans);
    const empty = lines ? '' : trans.__('nothing was printed');
    const said = [stateWord(job.state, trans), elapsedWords(job, api.now(), trans), why, empty];
    return `${ICONS[job.state]} ${said.filter(Boolean).join(' · ')}`;
  }

  private readonly _said = h('span');
  private readonly _more: HTMLElement;
}

/**
 * Search in a log view: within the lines that the page holds, and at the server over the whole file.
 *
 * Where the page holds only a part, the hits of the whole log are counted; a list leads to each of them.
 */

import type { TranslationBundle } from '@jupyterlab/translation';

import { Button, h, setText } from './dom';
import type { ILogLine } from './linelinks';
import { LineStore } from './lines';
import { LogHits, MOST_LISTED } from './loghits';
import type { LogRows } from './logrows';
import { IFound } from './model';

const SLICE_MILLISECONDS = 12;
const DELAY_MILLISECONDS = 150;
const AGAIN_MILLISECONDS = 1000;
const MOST_HITS = 100_000;

/** The whole log at the server. */
export interface IWholeLog {
  /** Whether the page lacks lines. */
  isCut(): boolean;
  find(text: string, most: number, signal: AbortSignal): Promise<IFound>;
  readAll(): void;
  go(line: ILogLine): void;
}

export class LogSearch {
  readonly node: HTMLElement;
  /** The list of hits in the whole log, for a place of its own. */
  readonly hits: LogHits;

  constructor(
    private readonly lines: LineStore,
    private readonly trans: TranslationBundle,
    private readonly rows: LogRows,
    private readonly whole: IWholeLog
  ) {
    const back = new Button('↑', trans.__('Previous hit'), () => this._step(-1));
    const on = new Button('↓', trans.__('Next hit'), () => this._step(1));
    back.node.setAttribute('aria-label', trans.__('Previous hit'));
    on.node.setAttribute('aria-label', trans.__('Next hit'));
    this._input.placeholder = trans.__('Search');
    this._input.setAttribute('aria-label', trans.__('Search'));
    this._input.addEventListener('input', () => this._later());
    this._input.addEventListener('keydown', event => {
      if (event.key === 'Enter') {
        event.preventDefault();
        this._step(event.shiftKey ? -1 : 1);
      } else if (event.key === 'Escape') {
        this.clear();
      }
    });
    this._all.addEventListener('click', () => this._toggleHits());
    this.hits = new LogHits(
      trans,
      line => whole.go(line),
      () => whole.readAll(),
      () => this._closeHits()
    );
    this.node = h(
      'div',
      { class: 'jp-PaiLog-search', role: 'search' },
      this._input,
      this._count,
      back.node,
      on.node,
      this._all
    );
  }

  focus(): void {
    this._input.focus();
    this._input.select();
  }

  clear(): void {
    this._input.value = '';
    this._begin();
  }

  /** The lines are read anew: what is searched for stays. */
  again(): void {
    this._begin();
  }

  /** Lines have come: look through them too, now and then. */
  grow(): void {
    if (this._input.value && !this._timer) {
      this._timer = window.setTimeout(() => {
        this._timer = 0;
        this._round += 1;
        void this._run(this._round);
      }, AGAIN_MILLISECONDS);
    }
  }

  dispose(): void {
    this._abort.abort();
    clearTimeout(this._timer);
    this._round += 1;
  }

  private _later(): void {
    clearTimeout(this._timer);
    this._timer = window.setTimeout(() => {
      this._timer = 0;
      this._begin();
    }, DELAY_MILLISECONDS);
  }

  private _begin(): void {
    this._round += 1;
    this._hits = [];
    this._at = -1;
    this.rows.wanted = this._input.value;
    setText(this._count, '');
    this._all.hidden = true;
    this._found = null;
    this.hits.hide();
    this._all.setAttribute('aria-expanded', 'false');
    this._abort.abort();
    this._abort = new AbortController();
    if (this._input.value) {
      void this._run(this._round);
      void this._askServer(this._input.value, this._abort.signal);
    }
  }

  /** Look again in the lines that are loaded now; what was found in the whole log stays. */
  linesChanged(): void {
    this._round += 1;
    this._hits = [];
    this._at = -1;
    if (this._input.value) {
      void this._run(this._round);
    }
  }

  /** Ask which lines of the whole log have the text; told where the page does not hold all of them. */
  private async _askServer(text: string, signal: AbortSignal): Promise<void> {
    if (!this.whole.isCut()) {
      return;
    }
    try {
      const found = await this.whole.find(text, MOST_LISTED, signal);
      if (!signal.aborted && this.whole.isCut()) {
        const { lines } = found;
        this._found = found;
        setText(
          this._all,
          this.trans._n('%1 in the whole log: show all', '%1 in the whole log: show all', lines, lines)
        );
        this._all.hidden = lines === 0;
      }
    } catch {
      // What the page holds was searched; whether the server can be reached is said below the lines.
    }
  }

  private _toggleHits(): void {
    if (this.hits.node.hidden && this._found) {
      this.hits.show(this._found, this.rows.prefixed);
      this._all.setAttribute('aria-expanded', 'true');
    } else {
      this._closeHits();
    }
  }

  private _closeHits(): void {
    this.hits.hide();
    this._all.setAttribute('aria-expanded', 'false');
    this._all.focus();
  }

  private async _run(round: number): Promise<void> {
    const hits: number[] = [];
    let began = performance.now();
    for (const found of this.lines.search(this._input.value)) {
      hits.push(...found.map(line => line + this.lines.dropped));
      if (performance.now() - began > SLICE_MILLISECONDS) {
        await new Promise(resolve => setTimeout(resolve));
        began = performance.now();
      }
      if (round !== this._round) {
        return;
      }
      if (hits.length > MOST_HITS) {
        break;
      }
    }
    this._hits = hits;
    this._draw();
  }

  private _step(by: number): void {
    const { length } = this._hits;
    if (!length) {
      return;
    }
    this._at = this._at < 0 ? (by > 0 ? 0 : length - 1) : (this._at + by + length) % length;
    this.rows.reveal(this._hits[this._at]);
    this._draw();
  }

  private _draw(): void {
    const { length } = this._hits;
    const many = length > MOST_HITS ? `${MOST_HITS}+` : String(length);
    const said = this._at < 0 ? this.trans._n('%1 line', '%1 lines', length, many) : `${this._at + 1}/${many}`;
    setText(this._count, length ? said : this.trans.__('no hit'));
  }

  private _abort = new AbortController();
  private _hits: number[] = [];
  private _at = -1;
  private _round = 0;
  private _found: IFound | null = null;
  private _timer = 0;
  private readonly _input = h('input', { type: 'search', class: 'jp-PaiLog-input', spellcheck: 'false' });
  private readonly _all = h('button', {
    type: 'button',
    class: 'jp-Pai-link',
    hidden: true,
    'aria-expanded': 'false'
  });
  private readonly _count = h('span', { class: 'jp-PaiLog-count', role: 'status' });
}

/** The lines of the whole log that have a text: a list to choose from, however far from the lines loaded they are. */

import type { TranslationBundle } from '@jupyterlab/translation';

import { strip } from './ansi';
import { h, setText } from './dom';
import type { ILogLine } from './linelinks';
import { IFound, IHit } from './model';

/** So many hits are listed. */
export const MOST_LISTED = 200;

export class LogHits {
  readonly node: HTMLElement;

  /**
   * @param go - called with the line that was chosen.
   * @param readAll - called when the whole log shall be read instead.
   * @param closed - called when the list was closed by its user.
   */
  constructor(
    private readonly trans: TranslationBundle,
    go: (line: ILogLine) => void,
    readAll: () => void,
    closed: () => void
  ) {
    const all = h('button', { type: 'button', class: 'jp-Pai-link' }, trans.__('Read the whole log'));
    const close = h('button', { type: 'button', class: 'jp-Pai-button' }, '×');
    close.setAttribute('aria-label', trans.__('Close the hits'));
    all.addEventListener('click', readAll);
    close.addEventListener('click', closed);
    this._list.addEventListener('click', event => {
      const item = (event.target as Element).closest<HTMLElement>('[data-hit]');
      if (item) {
        this._mark(item);
        go(this._hits[Number(item.dataset.hit)]);
      }
    });
    this._list.addEventListener('keydown', event => this._onKey(event));
    this.node = h(
      'section',
      { class: 'jp-PaiLog-hits', 'aria-label': trans.__('Hits in the whole log'), hidden: true },
      h('div', { class: 'jp-PaiLog-hitsHead' }, this._said, all, close),
      this._list
    );
    this.node.addEventListener('keydown', event => {
      if (event.key === 'Escape') {
        event.stopPropagation();
        closed();
      }
    });
  }

  show(found: IFound, prefixed: boolean): void {
    const { trans } = this;
    this._hits = found.hits;
    const all = trans._n('%1 line in the whole log', '%1 lines in the whole log', found.lines, found.lines);
    setText(this._said, found.more ? trans.__('%1; the first %2 of them:', all, found.hits.length) : `${all}:`);
    const items = found.hits.map((hit, at) =>
      h(
        'li',
        {},
        h(
          'button',
          { type: 'button', class: 'jp-PaiLog-hit', 'data-hit': at, tabindex: at ? -1 : 0 },
          prefixed && h('span', { class: 'jp-PaiLog-hitTask' }, hit.task),
          h('span', { class: 'jp-PaiLog-hitText' }, strip(hit.text) || ' ')
        )
      )
    );
    this._list.replaceChildren(...items);
    this.node.hidden = false;
    this._list.querySelector('button')?.focus();
  }

  hide(): void {
    this.node.hidden = true;
    this._hits = [];
    this._list.replaceChildren();
  }

  private _mark(item: HTMLElement): void {
    for (const each of this._list.querySelectorAll<HTMLElement>('[data-hit]')) {
      each.tabIndex = each === item ? 0 : -1;
      each.toggleAttribute('aria-current', each === item);
    }
  }

  private _onKey(event: KeyboardEvent): void {
    const items = [...this._list.querySelectorAll<HTMLElement>('[data-hit]')];
    const at = items.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: items.length - 1 }[event.key];
    if (to !== undefined && at >= 0 && items[to]) {
      event.preventDefault();
      items[to].focus();
    }
  }

  private _hits: IHit[] = [];
  private readonly _said = h('span', { role: 'status' });
  private readonly _list = h('ol', { class: 'jp-PaiLog-hitList' });
}

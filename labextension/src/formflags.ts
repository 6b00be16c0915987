/** A mapping of yes and no as boxes to tick: of what the cluster writes an e-mail. */

import type { TranslationBundle } from '@jupyterlab/translation';

import { h, rich } from './dom';
import { IOperation, IRow } from './formapi';
import { escaped } from './formdocument';
import { freshId, problemNodes } from './formfields';
import { IProblem } from './model';

export class Flags {
  readonly node: HTMLElement;

  constructor(
    readonly row: IRow,
    readonly path: string,
    trans: TranslationBundle,
    private readonly edit: (...patch: IOperation[]) => void
  ) {
    const id = freshId();
    for (const name of Object.keys(row.schema.properties ?? {})) {
      const box = h('input', { type: 'checkbox' });
      box.addEventListener('change', () => this._set(name, box.checked));
      this._boxes.set(name, box);
    }
    const boxes = [...this._boxes].map(([name, box]) => h('label', {}, box, ` ${wordOf(name, trans)}`));
    this.node = h(
      'div',
      { class: 'jp-PaiField', 'data-path': path, 'data-widget': 'flags', role: 'group', 'aria-labelledby': id },
      h('span', { class: 'jp-PaiField-label', id }, row.label),
      h('div', { class: 'jp-PaiFlags' }, ...boxes),
      h('div', { class: 'jp-PaiField-help' }, ...rich(row.help)),
      this._said
    );
  }

  show(value: unknown): void {
    this._value = value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {};
    for (const [name, box] of this._boxes) {
      box.checked = this._value[name] === true;
    }
  }

  complain(problems: IProblem[]): void {
    this._said.replaceChildren(...problemNodes(problems));
  }

  /** What is not ticked is not there; the last one takes the mapping with it. */
  private _set(name: string, on: boolean): void {
    const others = Object.keys(this._value).filter(each => each !== name);
    const path = `${this.path}/${escaped(name)}`;
    if (on) {
      this.edit({ op: 'replace', path, value: true });
    } else {
      this.edit({ op: 'remove', path: others.length ? path : this.path });
    }
  }

  private readonly _boxes = new Map<string, HTMLInputElement>();
  private readonly _said = h('div', { class: 'jp-PaiField-said', 'aria-live': 'polite' });
  private _value: Record<string, unknown> = {};
}

function wordOf(name: string, trans: TranslationBundle): string {
  const words: Record<string, string> = {
    running: trans.__('it runs'),
    succeeded: trans.__('it succeeded'),
    failed: trans.__('it failed'),
    stopped: trans.__('it was stopped'),
    retried: trans.__('it is tried again')
  };
  return words[name] ?? name;
}

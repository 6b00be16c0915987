/**
 * The secrets of a job: names, and where each value comes from.
 *
 * A value that is typed here lives in its input and goes to the server's secret store when *Store* is pressed;
 * then the input is empty. One that is asked for at submission is never here at all.
 */

import type { TranslationBundle } from '@jupyterlab/translation';

import { errorText } from './context';
import { h, rich, setText } from './dom';
import { FormApi, IOperation, IRow } from './formapi';
import { escaped } from './formdocument';
import { freshId, problemNodes } from './formfields';
import { IProblem } from './model';

const ASK = 'ask';
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

export class Secrets {
  readonly node: HTMLElement;
  constructor(
    row: IRow,
    private readonly api: FormApi,
    private readonly trans: TranslationBundle,
    references: Record<string, string>,
    private readonly edit: (...patch: IOperation[]) => void,
    private readonly changed: () => void
  ) {
    this._references = new Map(Object.entries(references));
    const id = freshId();
    const add = h('button', { type: 'button', class: 'jp-Pai-link' }, trans.__('Add'));
    add.setAttribute('aria-label', trans.__('Add a secret'));
    add.addEventListener('click', () => this._draft());
    this.node = h(
      'div',
      { class: 'jp-PaiField', 'data-path': '/secrets', 'data-widget': 'secrets', role: 'group', 'aria-labelledby': id },
      h('div', { class: 'jp-PaiField-head' }, h('span', { class: 'jp-PaiField-label', id }, row.label), add),
      this._body,
      h(
        'div',
        { class: 'jp-PaiField-help' },
        trans.__('Private values: each is in $NAME in the tasks, and never in the document, the notebook or a log.')
      ),
      this._said
    );
    void this._look();
  }

  /** The reference of each secret by its name. */
  get references(): Record<string, string> {
    return Object.fromEntries(this._references);
  }

  show(value: unknown): void {
    const names = value !== null && typeof value === 'object' ? Object.keys(value) : [];
    for (const name of names) {
      this._references.set(name, this._references.get(name) ?? ASK);
    }
    for (const name of [...this._references.keys()].filter(each => !names.includes(each))) {
      this._references.delete(name);
    }
    if (names.join('\n') !== this._names.join('\n')) {
      this._names = names;
      this._body.replaceChildren(...names.map(name => this._line(name)));
    }
  }

  complain(problems: IProblem[]): void {
    this._said.replaceChildren(...problemNodes(problems));
  }

  private async _look(): Promise<void> {
    try {
      this._stored = await this.api.storedSecrets();
    } catch (error) {
      this._noStore = errorText(error);
    }
    this._body.replaceChildren(...this._names.map(name => this._line(name)));
  }

  private _draft(): void {
    const { trans } = this;
    const input = h('input', {
      type: 'text',
      class: 'jp-mod-styled',
      spellcheck: 'false',
      autocomplete: 'off',
      placeholder: 'HF_TOKEN',
      'aria-label': trans.__('Name of the secret')
    });
    const line = h('div', { class: 'jp-PaiTable-line' }, input);
    input.addEventListener('change', () => {
      const name = input.value.trim();
      if (!NAME.test(name)) {
        setText(this._said, trans.__('Names of secrets are letters, digits and _, no digit first.'));
        return;
      }
      this._said.replaceChildren();
      line.remove();
      this._references.set(name, this._stored.includes(name) ? `keyring:${name}` : ASK);
      // The document holds the name only; an empty value stands for it.
      this.edit({ op: 'add', path: `/secrets/${escaped(name)}`, value: '' });
    });
    this._body.append(line);
    input.focus();
  }

  private _line(name: string): HTMLElement {
    const { trans } = this;
    const source = h('select', { 'aria-label': trans.__('Where %1 comes from', name) });
    const options: [string, string][] = [[ASK, trans.__('asked for at submission')]];
    const entries = new Set(this._stored);
    const now = this._references.get(name) ?? ASK;
    if (now.startsWith('keyring:')) {
      entries.add(now.slice('keyring:'.length));
    }
    entries.forEach(each => options.push([`keyring:${each}`, trans.__('keyring: %1', each)]));
    if (!options.some(([value]) => value === now)) {
      options.push([now, now]);
    }
    source.append(...options.map(([value, label]) => h('option', { value }, label)));
    source.value = now;
    source.addEventListener('change', () => {
      this._references.set(name, source.value);
      this.changed();
    });
    const remove = h('button', { type: 'button', class: 'jp-Pai-link', title: trans.__('Remove') }, '×');
    remove.setAttribute('aria-label', trans.__('Remove the secret %1', name));
    remove.addEventListener('click', () => this.edit({ op: 'remove', path: `/secrets/${escaped(name)}` }));
    return h('div', { class: 'jp-PaiTable-line' }, h('code', {}, name), source, this._store(name), remove);
  }

  /** An input whose value goes to the server's secret store and nowhere else. */
  private _store(name: string): HTMLElement {
    const { trans } = this;
    if (this._noStore) {
      const why = h('span', { class: 'jp-PaiField-aside', title: this._noStore }, trans.__('no keyring here'));
      why.tabIndex = 0;
      why.setAttribute('aria-label', this._noStore);
      why.setAttribute('role', 'note');
      return why;
    }
    const value = h('input', {
      type: 'password',
      class: 'jp-mod-styled',
      // Browsers offer to save what looks like a login; this does not.
      autocomplete: 'new-password',
      placeholder: trans.__('value'),
      'aria-label': trans.__('Value of %1', name)
    });
    const button = h('button', { type: 'button', class: 'jp-Pai-link' }, trans.__('Store'));
    button.title = trans.__('Put the value into the keyring of the server, under this name');
    const store = async (): Promise<void> => {
      const typed = value.value;
      value.value = '';
      if (!typed) {
        return;
      }
      try {
        await this.api.putSecret(name, typed);
        this._stored = [...new Set([...this._stored, name])];
        this._references.set(name, `keyring:${name}`);
        this._body.replaceChildren(...this._names.map(each => this._line(each)));
        this.changed();
      } catch (error) {
        this._said.replaceChildren(...rich(errorText(error)));
      }
    };
    button.addEventListener('click', () => void store());
    value.addEventListener('keydown', event => {
      if (event.key === 'Enter') {
        event.preventDefault();
        void store();
      }
    });
    return h('span', { class: 'jp-PaiSecret-store' }, value, button);
  }

  private readonly _references: Map<string, string>;
  private _names: string[] = [];
  private _stored: string[] = [];
  private _noStore = '';
  private readonly _body = h('div', { class: 'jp-PaiTable' });
  private readonly _said = h('div', { class: 'jp-PaiField-said', role: 'status' });
}

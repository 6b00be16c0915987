/**
 * One row of the table of fields as something to fill in.
 *
 * JupyterLab's own FormComponent was the other way. It names its inputs by headings that no screen reader ties
 * to them, puts defaults in as values, and draws the whole form anew with every answer of the server, below
 * the hands of who types; what it would save is this file.
 */

import type { TranslationBundle } from '@jupyterlab/translation';

import { h, rich, setAttribute } from './dom';
import { IRow } from './formapi';
import { IProblem } from './model';
import { durationText, memoryText, parseDuration, parseMemory } from './quantities';

const TYPING_MILLISECONDS = 300;
let count = 0;

/** An id that no other element of the page has. */
export function freshId(): string {
  count += 1;
  return `jp-PaiForm-${count}`;
}

/** What reads an input's text into a value, and writes a value as text. */
interface IFormat {
  read(text: string): unknown;
  write(value: unknown): string;
  /** Said where a text cannot be read. */
  wrong: string;
}

type Input = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

/** A label, an input, its help, and what is wrong with it. */
export class Field {
  readonly node: HTMLElement;
  readonly input: Input;

  /**
   * @param path - place of the value in the document.
   * @param change - told of another value; undefined: none, so that the default holds.
   */
  constructor(
    readonly row: IRow,
    readonly path: string,
    trans: TranslationBundle,
    private readonly change: (value: unknown) => void
  ) {
    const id = freshId();
    this._format = formatOf(row, trans);
    this.input = inputOf(row, trans);
    this.input.id = id;
    this.input.classList.toggle('jp-mod-styled', this.input.tagName !== 'SELECT'); // Styled, it has no arrow.
    if (row.required) {
      this.input.setAttribute('aria-required', 'true');
    }
    this.input.setAttribute('aria-describedby', `${id}-help ${id}-said`);
    this._said.id = `${id}-said`;
    const unit = row.unit && row.unit !== row.label && row.widget === 'number' ? ` (${row.unit})` : '';
    this.node = h(
      'div',
      { class: 'jp-PaiField', 'data-path': path, 'data-widget': row.widget },
      h(
        'label',
        { for: id },
        row.label,
        unit && h('span', { class: 'jp-PaiField-unit' }, unit),
        row.required && h('span', { class: 'jp-PaiField-required' }, ` ${trans.__('required')}`)
      ),
      this.input,
      h('div', { class: 'jp-PaiField-help', id: `${id}-help` }, ...rich(row.help), this._aside),
      this._said
    );
    this.input.addEventListener('input', () => this._later());
    this.input.addEventListener('change', () => this._commit());
  }

  /** Words about the value beside the help: what there is of it. */
  set aside(text: string) {
    this._aside.textContent = text ? ` ${text}` : '';
  }

  /** Show what the document says, unless somebody is typing. */
  show(value: unknown): void {
    this._shown = value;
    if (this._timer || this._invalid) {
      return;
    }
    const text = value === undefined || value === null ? '' : this._format.write(value);
    if (document.activeElement === this.input && JSON.stringify(this._read()) === JSON.stringify(value)) {
      return; // The same, written in another way: it is not taken out of somebody's hands.
    }
    if (this.input.value !== text) {
      this.input.value = text;
      if (this.input.value !== text && this.input instanceof HTMLSelectElement) {
        // A value that is none of those to choose from still shows.
        this.input.append(h('option', { value: text }, text));
        this.input.value = text;
      }
    }
  }

  /** Show what is wrong here. */
  complain(problems: IProblem[]): void {
    this._problems = problems;
    this._say();
  }

  private _later(): void {
    clearTimeout(this._timer);
    this._timer = window.setTimeout(() => this._commit(), TYPING_MILLISECONDS);
  }

  private _read(): unknown {
    const text = this.input.value;
    return text.trim() === '' ? undefined : this._format.read(text);
  }

  private _commit(): void {
    clearTimeout(this._timer);
    this._timer = 0;
    const value = this._read();
    this._invalid = value === null && this.input.value.trim() !== '';
    this._say();
    if (!this._invalid && JSON.stringify(value) !== JSON.stringify(this._shown ?? undefined)) {
      this._shown = value;
      this.change(value);
    }
  }

  private _say(): void {
    const said = this._invalid
      ? [h('div', { 'data-severity': 'error' }, this._format.wrong)]
      : problemNodes(this._problems);
    if (this._said.textContent !== said.map(each => each.textContent).join('')) {
      this._said.replaceChildren(...said);
    }
    const bad = this._invalid || this._problems.some(each => each.severity === 'error');
    setAttribute(this.input, 'aria-invalid', bad ? 'true' : null);
  }

  private readonly _format: IFormat;
  private readonly _aside = h('span', { class: 'jp-PaiField-aside' });
  private readonly _said = h('div', { class: 'jp-PaiField-said', 'aria-live': 'polite' });
  private _problems: IProblem[] = [];
  private _shown: unknown = undefined;
  private _invalid = false;
  private _timer = 0;
}

function inputOf(row: IRow, trans: TranslationBundle): Input {
  const standard = standardText(row);
  if (row.widget === 'lines') {
    return h('textarea', { rows: 3, spellcheck: 'false', placeholder: standard });
  }
  const choices = row.widget === 'switch' ? ['true', 'false'] : row.schema.enum;
  if (choices) {
    const words: Record<string, string> = { true: trans.__('yes'), false: trans.__('no') };
    return h(
      'select',
      {},
      h('option', { value: '' }, standard ? trans.__('default: %1', standard) : trans.__('default')),
      ...choices.map(each => h('option', { value: each }, row.widget === 'switch' ? words[each] : each))
    );
  }
  return h('input', {
    type: 'text',
    spellcheck: 'false',
    autocomplete: 'off',
    inputmode: row.widget === 'number' ? 'numeric' : null,
    placeholder: standard
  });
}

/** Whether a form shows a row: profiles of this kind heed it, or the document says something there. */
export function isShown(row: IRow, kind: string, value: unknown): boolean {
  return !row.profiles.length || row.profiles.includes(kind) || value !== undefined;
}

/** What is wrong, one line each, with what to do about it. */
export function problemNodes(problems: IProblem[]): HTMLElement[] {
  return problems.map(each =>
    h('div', { 'data-severity': each.severity }, ...rich([each.message, each.hint].filter(Boolean).join(' ')))
  );
}

/** Names to choose from in a field that takes any. */
export function offerNames(field: Field, names: string[]): void {
  let list = field.node.querySelector('datalist');
  if (!list) {
    list = h('datalist', { id: freshId() });
    field.node.append(list);
    field.input.setAttribute('list', list.id);
  }
  list.replaceChildren(...names.map(value => h('option', { value })));
}

/** What holds where nothing is said, in words. */
export function standardText(row: IRow): string {
  const { default: standard, widget } = row;
  if (standard === null || standard === undefined) {
    return '';
  }
  if (typeof standard === 'number') {
    return widget === 'memory' ? memoryText(standard) : widget === 'duration' ? durationText(standard) : `${standard}`;
  }
  return typeof standard === 'string' ? standard : JSON.stringify(standard);
}

/** A text goes as it is; null says that it cannot be read. */
function formatOf(row: IRow, trans: TranslationBundle): IFormat {
  const { schema, widget } = row;
  if (widget === 'memory') {
    const write = (value: unknown): string => (typeof value === 'number' ? memoryText(value) : String(value));
    return { read: parseMemory, write, wrong: trans.__('Memory is written like 8Gi, 500M or 8192 (MB).') };
  }
  if (widget === 'duration') {
    const write = (value: unknown): string => (typeof value === 'number' ? durationText(value) : String(value));
    return { read: parseDuration, write, wrong: trans.__('Time is written like 2h30m, 45s or 90 (seconds).') };
  }
  if (widget === 'lines') {
    return linesFormat(schema.type === 'array');
  }
  if (widget === 'switch' || schema.type === 'boolean') {
    return { read: text => text === 'true', write: String, wrong: '' };
  }
  if (schema.type === 'integer' || schema.type === 'number') {
    const whole = schema.type === 'integer';
    const read = (text: string): number | null => {
      const number = Number(text);
      const fits = Number.isFinite(number) && (!whole || Number.isInteger(number));
      return fits && number >= (schema.minimum ?? -Infinity) && number <= (schema.maximum ?? Infinity) ? number : null;
    };
    const least = schema.minimum ?? null;
    const wrong =
      least === null ? trans.__('This is a number.') : trans.__('This is a whole number from %1 on.', least);
    return { read, write: String, wrong };
  }
  if (schema.type === 'object' || schema.type === 'array') {
    return jsonFormat(trans);
  }
  return { read: text => text, write: String, wrong: '' };
}

/** Lines of a list; a text of several lines stays one item only where no list is wanted. */
function linesFormat(isList: boolean): IFormat {
  if (!isList) {
    return { read: text => text, write: String, wrong: '' };
  }
  return {
    read: text => {
      const lines = text.replace(/\n+$/, '').split('\n');
      // Each item is trimmed by the protocol; what depends on its spaces must stay one.
      return lines.every(line => line !== '' && line === line.trim()) ? lines : [text.replace(/\n+$/, '')];
    },
    write: value => (Array.isArray(value) ? value.map(String).join('\n') : String(value)),
    wrong: ''
  };
}

/** A row of a kind that no widget is for yet: its value as JSON. */
function jsonFormat(trans: TranslationBundle): IFormat {
  return {
    read: text => {
      try {
        return JSON.parse(text) as unknown;
      } catch {
        return null;
      }
    },
    write: value => JSON.stringify(value),
    wrong: trans.__('This is a value as JSON.')
  };
}

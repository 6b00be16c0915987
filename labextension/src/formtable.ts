/** Rows of names and values, or of small objects: parameters, environment, ports, data, storages. */

import type { TranslationBundle } from '@jupyterlab/translation';

import { h, rich } from './dom';
import { IOperation, IRow, ISchema } from './formapi';
import { escaped } from './formdocument';
import { freshId, problemNodes } from './formfields';
import { IProblem } from './model';
import { parseScalar, scalarText } from './quantities';

const TYPING_MILLISECONDS = 400;

/** One line of a table. */
interface ILine {
  /** Its key or place in the document; null: it is not there yet. */
  key: string | null;
  node: HTMLElement;
  inputs: Record<string, HTMLInputElement>;
}

const NAME = 'name';
const VALUE = 'value';

/** A table that is one mapping or one list of the document. */
export class Table {
  readonly node: HTMLElement;

  /**
   * @param edit - told of what changes; operations on the document.
   * @param offered - names to choose from, where some are known.
   */
  constructor(
    readonly row: IRow,
    readonly path: string,
    private readonly trans: TranslationBundle,
    private readonly edit: (...patch: IOperation[]) => void,
    offered: string[] = []
  ) {
    this._isList = row.schema.type === 'array';
    this._columns = this._isList ? columns(row.schema.items ?? {}) : [NAME, VALUE];
    const id = freshId();
    this._names.id = `${id}-names`;
    this._names.append(...offered.map(each => h('option', { value: each })));
    const add = h('button', { type: 'button', class: 'jp-Pai-link' }, trans.__('Add'));
    add.setAttribute('aria-label', trans.__('Add to: %1', row.label));
    add.addEventListener('click', () => this._line(null).inputs[this._columns[0]].focus());
    this.node = h(
      'div',
      { class: 'jp-PaiField', 'data-path': path, 'data-widget': 'table', role: 'group', 'aria-labelledby': id },
      h('div', { class: 'jp-PaiField-head' }, h('span', { class: 'jp-PaiField-label', id }, row.label), add),
      this._body,
      h('div', { class: 'jp-PaiField-help' }, ...rich(row.help)),
      this._said,
      this._names
    );
  }

  /** What may stand as names, once known. */
  offer(names: string[]): void {
    this._names.replaceChildren(...names.map(each => h('option', { value: each })));
  }

  /** Show what the document says; lines that somebody is filling in stay. */
  show(value: unknown): void {
    const said = this._entries(value);
    const known = this._lines.filter(line => line.key !== null);
    if (known.length !== said.length || known.some((line, at) => line.key !== said[at][0])) {
      this._lines.filter(line => line.key !== null).forEach(line => line.node.remove());
      const drafts = this._lines.filter(line => line.key === null);
      this._lines = [];
      said.forEach(([key]) => this._line(key));
      drafts.forEach(line => this._body.append(line.node));
      this._lines.push(...drafts);
    }
    said.forEach(([, texts], at) => {
      for (const [column, input] of Object.entries(this._lines[at].inputs)) {
        const text = texts[column] ?? '';
        if (input !== document.activeElement && input.value !== text) {
          input.value = text;
        }
      }
    });
  }

  complain(problems: IProblem[]): void {
    this._said.replaceChildren(...problemNodes(problems));
  }

  private _entries(value: unknown): [string, Record<string, string>][] {
    if (this._isList) {
      const items = Array.isArray(value) ? (value as Record<string, unknown>[]) : [];
      return items.map((item, at) => [
        String(at),
        Object.fromEntries(this._columns.map(column => [column, this._write(column, item?.[column])]))
      ]);
    }
    const mapping = value !== null && typeof value === 'object' ? Object.entries(value) : [];
    return mapping.map(([key, item]) => [key, { [NAME]: key, [VALUE]: this._write(VALUE, item) }]);
  }

  private _line(key: string | null): ILine {
    const { trans } = this;
    const inputs: Record<string, HTMLInputElement> = {};
    const required = this._isList ? (this.row.schema.items?.required ?? []) : [NAME];
    for (const column of this._columns) {
      inputs[column] = h('input', {
        type: 'text',
        spellcheck: 'false',
        autocomplete: 'off',
        class: 'jp-mod-styled',
        placeholder: column,
        'aria-label': `${this.row.label}: ${column}`,
        'aria-required': required.includes(column) ? 'true' : null,
        list: column === NAME ? this._names.id : null
      });
    }
    const remove = h('button', { type: 'button', class: 'jp-Pai-link' }, '×');
    const line: ILine = {
      key,
      inputs,
      node: h('div', { class: 'jp-PaiTable-line' }, ...Object.values(inputs), remove)
    };
    remove.setAttribute('aria-label', trans.__('Remove from: %1', this.row.label));
    remove.title = trans.__('Remove');
    remove.addEventListener('click', () => this._remove(line));
    for (const [column, input] of Object.entries(inputs)) {
      let timer = 0;
      const commit = (): void => {
        clearTimeout(timer);
        this._commit(line, column);
      };
      input.addEventListener('change', commit);
      if (column !== NAME) {
        // A name that is half typed is another name; a value that is half typed may be shown.
        input.addEventListener('input', () => {
          clearTimeout(timer);
          timer = window.setTimeout(commit, TYPING_MILLISECONDS);
        });
      }
    }
    this._lines.push(line);
    this._body.append(line.node);
    return line;
  }

  private _remove(line: ILine): void {
    const at = this._lines.indexOf(line);
    this._lines.splice(at, 1);
    line.node.remove();
    if (line.key !== null) {
      // An empty table is none: servers refuse some of them.
      const isLast = !this._lines.some(each => each.key !== null);
      this.edit({ op: 'remove', path: isLast ? this.path : this._place(line.key) });
      this._renumber();
    }
  }

  private _commit(line: ILine, column: string): void {
    if (this._isList) {
      this._commitItem(line, column);
    } else {
      this._commitEntry(line);
    }
  }

  private _commitEntry(line: ILine): void {
    const name = line.inputs[NAME].value.trim();
    const value = this._read(VALUE, line.inputs[VALUE].value);
    if (!name || this._lines.some(other => other !== line && other.key === name)) {
      return; // The same name twice would be one entry less; it waits for another name.
    }
    const path = this._place(name);
    if (line.key === null) {
      this.edit({ op: 'add', path, value });
    } else if (line.key === name) {
      this.edit({ op: 'replace', path, value });
    } else {
      this.edit({ op: 'move', from: this._place(line.key), path }, { op: 'replace', path, value });
    }
    line.key = name;
  }

  private _commitItem(line: ILine, column: string): void {
    const items = this.row.schema.items;
    const required = items?.required ?? [];
    if (line.key === null) {
      if (required.some(each => line.inputs[each].value.trim() === '')) {
        return;
      }
      const filled = this._columns.filter(each => line.inputs[each].value.trim() !== '');
      const item = Object.fromEntries(filled.map(each => [each, this._read(each, line.inputs[each].value)]));
      const first = !this._lines.some(each => each.key !== null);
      this.edit(
        first ? { op: 'add', path: this.path, value: [item] } : { op: 'add', path: `${this.path}/-`, value: item }
      );
      line.key = 'new';
      this._lines = [...this._lines.filter(each => each !== line && each.key !== null), line].concat(
        this._lines.filter(each => each !== line && each.key === null)
      );
      this._renumber();
      return;
    }
    const text = line.inputs[column].value;
    const path = `${this._place(line.key)}/${escaped(column)}`;
    if (text.trim() !== '') {
      this.edit({ op: 'replace', path, value: this._read(column, text) });
    } else if (!required.includes(column)) {
      // `replace` makes what is missing, so that `remove` has something to take.
      this.edit({ op: 'replace', path, value: '' }, { op: 'remove', path });
    }
  }

  private _renumber(): void {
    if (this._isList) {
      this._lines.filter(line => line.key !== null).forEach((line, at) => (line.key = String(at)));
    }
  }

  private _place(key: string): string {
    return `${this.path}/${escaped(key)}`;
  }

  private _schema(column: string): ISchema {
    return (this._isList ? this.row.schema.items?.properties?.[column] : this.row.schema.values) ?? {};
  }

  private _read(column: string, text: string): unknown {
    const { type } = this._schema(column);
    if (type === 'string') {
      return text;
    }
    const read = parseScalar(text);
    return type === 'integer' && text.trim() === '' ? 1 : read;
  }

  private _write(column: string, value: unknown): string {
    return this._schema(column).type === 'string' && typeof value === 'string' ? value : scalarText(value);
  }

  private readonly _isList: boolean;
  private readonly _columns: string[];
  private _lines: ILine[] = [];
  private readonly _body = h('div', { class: 'jp-PaiTable' });
  private readonly _said = h('div', { class: 'jp-PaiField-said', 'aria-live': 'polite' });
  private readonly _names = h('datalist');
}

/** The columns of a list of objects, those that must be first. */
function columns(items: ISchema): string[] {
  const required = items.required ?? [];
  return [...required, ...Object.keys(items.properties ?? {}).filter(each => !required.includes(each))];
}

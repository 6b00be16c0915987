/** A list of objects of several kinds, each kind with fields of its own: plug-ins, prerequisites. */

import type { TranslationBundle } from '@jupyterlab/translation';

import { h, rich } from './dom';
import { IOperation, IRow, ISchema, Values } from './formapi';
import { setting, valueAt } from './formdocument';
import { Field, freshId, problemNodes } from './formfields';
import { Table } from './formtable';
import { IProblem } from './model';

/** One member of an item, with the way to it. */
interface IMember {
  way: string[];
  schema: ISchema;
  required: boolean;
}

interface IItem {
  kind: string;
  fields: (Field | Table)[];
}

export class Kinds {
  readonly node: HTMLElement;

  constructor(
    readonly row: IRow,
    readonly path: string,
    private readonly trans: TranslationBundle,
    private readonly values: () => Values,
    private readonly edit: (...patch: IOperation[]) => void
  ) {
    const { key, of } = row.schema.items?.kinds ?? { key: '', of: {} };
    this._key = key;
    this._kinds = of;
    const id = freshId();
    const kind = h('select', {
      'aria-label': trans.__('Kind to add to: %1', row.label)
    });
    kind.append(...Object.keys(of).map(each => h('option', { value: each }, each)));
    const add = h('button', { type: 'button', class: 'jp-Pai-link' }, trans.__('Add'));
    add.setAttribute('aria-label', trans.__('Add to: %1', row.label));
    add.addEventListener('click', () => this._add(kind.value));
    this.node = h(
      'div',
      {
        class: 'jp-PaiField',
        'data-path': path,
        'data-widget': 'kinds',
        role: 'group',
        'aria-labelledby': id
      },
      h('div', { class: 'jp-PaiField-head' }, h('span', { class: 'jp-PaiField-label', id }, row.label), kind, add),
      this._body,
      h('div', { class: 'jp-PaiField-help' }, ...rich(row.help)),
      this._said
    );
  }

  show(value: unknown): void {
    const items = Array.isArray(value) ? (value as Values[]) : [];
    const kinds = items.map(each => String(each?.[this._key] ?? ''));
    if (kinds.join('\n') !== this._items.map(each => each.kind).join('\n')) {
      this._items = kinds.map(kind => ({ kind, fields: [] }));
      this._body.replaceChildren(...kinds.map((kind, at) => this._item(kind, at)));
    }
    this._items.forEach(item => item.fields.forEach(field => field.show(valueAt(this.values(), field.path))));
  }

  complain(problems: IProblem[]): void {
    const fields = this._items.flatMap(each => each.fields);
    const isAt = (problem: IProblem, path: string): boolean =>
      problem.path === path || !!problem.path?.startsWith(`${path}/`);
    fields.forEach(field => field.complain(problems.filter(each => isAt(each, field.path))));
    const rest = problems.filter(each => !fields.some(field => isAt(each, field.path)));
    this._said.replaceChildren(...problemNodes(rest));
  }

  /** One item; of a kind that has its fields elsewhere nothing, and of an unknown one its name. */
  private _item(kind: string, at: number): HTMLElement | string {
    if (this.row.elsewhere.includes(kind)) {
      return '';
    }
    const { trans } = this;
    const remove = h('button', { type: 'button', class: 'jp-Pai-link', title: trans.__('Remove') }, '×');
    remove.setAttribute('aria-label', trans.__('Remove %1', kind));
    const path = `${this.path}/${at}`;
    remove.addEventListener('click', () =>
      this.edit({
        op: 'remove',
        path: this._items.length > 1 ? path : this.path
      })
    );
    const schema = this._kinds[kind];
    const fields = schema ? members(schema, this._key).map(each => this._field(kind, path, each)) : [];
    this._items[at].fields = fields;
    return h(
      'fieldset',
      { class: 'jp-PaiKind', 'data-kind': kind, 'data-path': path },
      h('legend', {}, kind, ' ', remove),
      schema ? null : h('span', { class: 'jp-PaiField-help' }, trans.__('Not known here; the YAML tab has it.')),
      ...fields.map(each => each.node)
    );
  }

  private _field(kind: string, item: string, { way, schema, required }: IMember): Field | Table {
    const row: IRow = {
      path: way.join('/'),
      label: way.filter(each => each !== 'parameters').join(' '),
      help: schema.description ?? '',
      unit: '',
      level: 'basic',
      widget: widgetOf(schema),
      default: null,
      required,
      profiles: [],
      elsewhere: [],
      section: 'advanced',
      schema
    };
    const path = `${item}/${way.join('/')}`;
    if (row.widget === 'table') {
      return new Table(row, path, this.trans, this.edit);
    }
    return new Field(row, path, this.trans, value => this.edit(...this._setting(kind, item, way, value)));
  }

  /** What stands around a value needs its fixed members: the key of a user has `type: custom` beside it. */
  private _setting(kind: string, item: string, way: string[], value: unknown): IOperation[] {
    const around = way.slice(0, -1);
    const path = [item, ...around].join('/');
    const schema = around.reduce<ISchema | undefined>((found, key) => found?.properties?.[key], this._kinds[kind]);
    const given = Object.entries(schema?.properties ?? {}).filter(([, each]) => each.const !== undefined);
    const fixed = Object.fromEntries(given.map(([key, each]) => [key, each.const]));
    const last = way[way.length - 1];
    if (value !== undefined && valueAt(this.values(), path) === undefined) {
      return [{ op: 'replace', path, value: { ...fixed, [last]: value } }];
    }
    const rest = Object.keys((valueAt(this.values(), path) ?? {}) as Values).filter(key => key !== last);
    if (value === undefined && around.length > 1 && rest.every(key => key in fixed)) {
      return [{ op: 'remove', path }];
    }
    return setting(this.values(), `${path}/${last}`, value);
  }

  private _add(kind: string): void {
    const now = valueAt(this.values(), this.path);
    const value = {
      [this._key]: kind,
      ...(standard(this._kinds[kind], this._key) as Values)
    };
    const isList = Array.isArray(now) && now.length > 0;
    this.edit(
      isList ? { op: 'add', path: `${this.path}/-`, value } : { op: 'replace', path: this.path, value: [value] }
    );
  }

  private readonly _key: string;
  private readonly _kinds: Record<string, ISchema>;
  private _items: IItem[] = [];
  private readonly _body = h('div');
  private readonly _said = h('div', {
    class: 'jp-PaiField-said',
    'aria-live': 'polite'
  });
}

/** The members that can be filled in: those of objects in them, then what is required, then the rest. */
function members(schema: ISchema, key: string): IMember[] {
  const found: IMember[] = [];
  const walk = (node: ISchema, way: string[]): void => {
    for (const [name, each] of Object.entries(node.properties ?? {})) {
      if (each.properties) {
        walk(each, [...way, name]);
      } else if (each.const === undefined && !(way.length === 0 && name === key)) {
        found.push({
          way: [...way, name],
          schema: each,
          required: node.required?.includes(name) ?? false
        });
      }
    }
  };
  walk(schema, []);
  const rank = ({ way, required }: IMember): number => (way.length > 1 ? 0 : required ? 1 : 2);
  return found.sort((one, other) => rank(one) - rank(other));
}

function widgetOf(schema: ISchema): string {
  if (schema.names !== undefined) {
    return 'table';
  }
  return { boolean: 'switch', integer: 'number', array: 'lines' }[String(schema.type)] ?? 'text';
}

/** What an object begins with: the example where there is one, else what it cannot do without. */
function standard(schema: ISchema, skipped = ''): unknown {
  if (schema.examples?.length) {
    return schema.examples[0];
  }
  if (schema.const !== undefined) {
    return schema.const;
  }
  if (schema.type === 'object') {
    const begun = Object.entries(schema.properties ?? {}).filter(
      ([name, each]) => name !== skipped && (schema.required?.includes(name) || each.examples?.length)
    );
    return Object.fromEntries(begun.map(([name, each]) => [name, standard(each)]));
  }
  return { integer: schema.minimum ?? 0, number: 0, boolean: false, array: [] }[String(schema.type)] ?? '';
}

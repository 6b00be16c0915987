/** All fields of a form, in the order *what*, *where it runs*, *with what*, *advanced*. */

import type { TranslationBundle } from '@jupyterlab/translation';

import { h } from './dom';
import { FormApi, ICapabilities, IOffers, IOperation, IProfile, IRow, ITested, Values } from './formapi';
import { escaped, setting, valueAt } from './formdocument';
import { Field, freshId, isShown, offerNames } from './formfields';
import { Flags } from './formflags';
import { imageIndex } from './formimage';
import { Kinds } from './formkinds';
import { Roles } from './formroles';
import { Secrets } from './formsecrets';
import { Table } from './formtable';
import { IProblem } from './model';

const STORAGES = '/extras/storages';
const QUEUE = '/defaults/virtualCluster';

export interface IPartsOptions {
  api: FormApi;
  trans: TranslationBundle;
  profiles: IProfile[];
  profile: string | null;
  secrets: Record<string, string>;
  values: () => Values;
  edit: (...patch: IOperation[]) => void;
  changed: () => void;
  choose: (profile: string | null) => void;
  /** Ask the profile's server again. */
  refresh: () => void;
}

type Part = Field | Table | Flags | Kinds;

export class FormParts {
  readonly node: HTMLElement;

  constructor(
    rows: IRow[],
    private readonly options: IPartsOptions
  ) {
    const { trans, profiles } = options;
    const images = profiles.map(each => each.settings.image).filter((each): each is string => typeof each === 'string');
    const role = {
      rows: rows.filter(row => row.section === 'role'),
      images,
      trans
    };
    this._roles = new Roles({
      ...role,
      values: options.values,
      edit: options.edit
    });
    const of = (section: string): HTMLElement[] =>
      rows.filter(row => row.section === section && row.widget !== 'roles').map(row => this._row(row));
    this.node = h(
      'div',
      { class: 'jp-PaiForm-fields' },
      section(trans.__('What'), ...of('what'), this._profiles()),
      section(trans.__('Where it runs'), this._capacity, this._roles.node),
      section(trans.__('With what'), ...of('with')),
      h('details', { class: 'jp-PaiForm-fold' }, h('summary', {}, h('h3', {}, trans.__('Advanced'))), ...of('advanced'))
    );
  }

  /** Where the value of each secret comes from. */
  get references(): Record<string, string> {
    return this._secrets?.references ?? {};
  }

  show(values: Values): void {
    for (const part of this._plain) {
      const value = valueAt(values, part.path);
      part.show(value);
      part.node.hidden = !isShown(part.row, this._kind, value);
    }
    this._secrets?.show(values.secrets);
    this._roles.show(values, this._capabilities, this._kind);
  }

  /** Show the fields that profiles of a kind heed; others only where they say something. */
  suit(kind: string): void {
    this._kind = kind;
    this.show(this.options.values());
  }

  /** Take what the profile has. */
  has(found: ITested): void {
    const { trans } = this.options;
    this._capabilities = found.capabilities;
    const said = found.ok
      ? (found.capabilities?.unreachable ?? '')
      : [found.message, found.hint].filter(Boolean).join(' ');
    this._capacity.textContent = said;
    const queues = (found.capabilities?.queues ?? []).map(each => (typeof each === 'string' ? each : each.name));
    for (const part of this._plain) {
      if (part.path === QUEUE && part instanceof Field) {
        offerNames(part, queues);
        part.aside = queues.length ? trans.__('There are: %1.', queues.join(', ')) : '';
      }
    }
    this._roles.show(this.options.values(), this._capabilities, this._kind);
  }

  /** Take what there is to choose from; anything else may be typed as well. */
  offer(found: IOffers): void {
    const clusters = found.virtualClusters.map(each => each.name);
    for (const part of this._plain) {
      if (part.path === STORAGES && part instanceof Table) {
        part.offer(found.storages.map(each => each.name));
      }
      if (part.path === QUEUE && part instanceof Field && clusters.length) {
        offerNames(part, clusters);
      }
    }
    this._roles.offer(found);
    this._roles.show(this.options.values(), this._capabilities, this._kind);
  }

  complain(problems: IProblem[]): void {
    const of = (path: string): IProblem[] =>
      problems.filter(each => each.path === path || each.path?.startsWith(`${path}/`));
    for (const part of this._plain) {
      part.complain(of(part.path));
    }
    this._secrets?.complain(of('/secrets'));
    this._roles.complain(of);
  }

  /** Go to the field of a path, or to the one around it; say whether there is one. */
  reveal(path: string): boolean {
    const all = [...this.node.querySelectorAll<HTMLElement>('[data-path]')];
    for (let place = path; place; place = place.slice(0, place.lastIndexOf('/'))) {
      const target = all.find(each => each.dataset.path === place) ?? this._image(place, all);
      if (target) {
        for (let fold = target.closest('details'); fold; fold = fold.parentElement?.closest('details') ?? null) {
          fold.open = true;
        }
        target.scrollIntoView({ block: 'center' });
        target.querySelector<HTMLElement>('input, select, textarea, button')?.focus();
        return true;
      }
    }
    return false;
  }

  /** The image of the first role. */
  image(): string | null {
    const values = this.options.values();
    const role = Object.keys((values.taskRoles ?? {}) as Values)[0] ?? '';
    const uri = valueAt(values, `/prerequisites/${imageIndex(values, role)}/uri`);
    return typeof uri === 'string' ? uri : null;
  }

  /** Fields of images keep the place that they had when they were made; another one may hold it now. */
  private _image(place: string, all: HTMLElement[]): HTMLElement | undefined {
    const values = this.options.values();
    const index = /^\/prerequisites\/(\d+)$/.exec(place)?.[1];
    const role = Object.keys((values.taskRoles ?? {}) as Values).find(name =>
      index === undefined ? place === `/taskRoles/${escaped(name)}/dockerImage` : imageIndex(values, name) === +index
    );
    const card = all.find(each => each.closest<HTMLElement>('[data-role]')?.dataset.role === role);
    return role
      ? (card?.closest('[data-role]')?.querySelector<HTMLElement>('[data-path^="/prerequisites/"]') ?? undefined)
      : undefined;
  }

  private _row(row: IRow): HTMLElement {
    const { api, trans, edit, changed, secrets } = this.options;
    if (row.path === '/secrets') {
      this._secrets = new Secrets(row, api, trans, secrets, edit, changed);
      return this._secrets.node;
    }
    const part = this._part(row);
    this._plain.push(part);
    return part.node;
  }

  private _part(row: IRow): Part {
    const { trans, values, edit } = this.options;
    switch (row.widget) {
      case 'table':
        return new Table(row, row.path, trans, edit);
      case 'flags':
        return new Flags(row, row.path, trans, edit);
      case 'kinds':
        return new Kinds(row, row.path, trans, values, edit);
      default:
        return new Field(row, row.path, trans, value => edit(...setting(values(), row.path, value)));
    }
  }

  private _profiles(): HTMLElement {
    const { trans, profiles, profile, choose, refresh } = this.options;
    const id = freshId();
    const standard = profiles.find(each => each.default)?.name ?? '';
    const select = h('select', { id, 'aria-describedby': `${id}-help` });
    select.append(h('option', { value: '' }, trans.__('default: %1', standard)));
    for (const each of profiles) {
      const label = each.usable ? `${each.name} (${each.kind})` : `${each.name}: ${each.reason}`;
      select.append(h('option', { value: each.name, disabled: !each.usable }, label));
    }
    select.value = profile ?? '';
    select.addEventListener('change', () => choose(select.value || null));
    const help = h('div', { class: 'jp-PaiField-help', id: `${id}-help` }, trans.__('A named place where jobs run.'));
    const again = h('button', { type: 'button', class: 'jp-Pai-link' }, trans.__('Ask again'));
    again.title = trans.__('Ask the profile again what it has to choose from');
    again.addEventListener('click', refresh);
    return h(
      'div',
      { class: 'jp-PaiField', 'data-path': '' },
      h('div', { class: 'jp-PaiField-head' }, h('label', { for: id }, trans.__('Profile')), again),
      select,
      help
    );
  }

  private readonly _roles: Roles;
  private _secrets: Secrets | null = null;
  private readonly _plain: Part[] = [];
  private _kind = '';
  private _capabilities: ICapabilities | null = null;
  private readonly _capacity = h('div', {
    class: 'jp-PaiField-said',
    role: 'status'
  });
}

function section(title: string, ...content: HTMLElement[]): HTMLElement {
  const id = freshId();
  return h('section', { class: 'jp-PaiForm-section', 'aria-labelledby': id }, h('h3', { id }, title), ...content);
}

/** Roles as cards: name, instances and GPUs at once; the rest below *customize* (O7, O10-O12, O22, O23). */

import type { TranslationBundle } from '@jupyterlab/translation';

import { Button, h } from './dom';
import { ICapabilities, IOffers, IOperation, IRow, ISku, Values } from './formapi';
import { escaped, removing, setting, valueAt } from './formdocument';
import { Field, freshId, isShown, problemNodes, standardText } from './formfields';
import { authOf, IAuth, imageIndex, settingAuth, settingImage } from './formimage';
import { SKU, SkuPart, skusOf } from './formsku';
import { Table } from './formtable';
import { IProblem } from './model';
import { memoryWords } from './quantities';

const NAME = /^[a-z][a-z0-9]{0,62}$/;
const IMAGE = '/prerequisites/*/uri';
/** Where else than in their own place roles are named. */
const OF_ROLES = ['/extras/paijupyter/roles', '/extras/hivedScheduler/taskRoles'];
/** Which of what a profile has a row takes from. */
const CAPACITY: Record<string, string> = {
  '/taskRoles/*/resourcePerInstance/gpu': 'gpu',
  '/taskRoles/*/resourcePerInstance/cpu': 'cpu',
  '/taskRoles/*/resourcePerInstance/memoryMB': 'memoryMB'
};

export interface IRolesOptions {
  rows: IRow[];
  images: string[];
  trans: TranslationBundle;
  values: () => Values;
  edit: (...patch: IOperation[]) => void;
}

/** All roles. */
export class Roles {
  readonly node: HTMLElement;

  constructor(private readonly options: IRolesOptions) {
    const { trans } = options;
    const add = h('button', { type: 'button', class: 'jp-Pai-link' }, trans.__('Add a role'));
    add.addEventListener('click', () => this._add());
    this._images.id = freshId();
    this.offer({ virtualClusters: [], skus: {}, storages: [], images: [] });
    this.node = h(
      'div',
      { class: 'jp-PaiRoles', 'data-path': '/taskRoles' },
      this._body,
      this._said,
      add,
      this._images
    );
  }

  show(values: Values, capabilities: ICapabilities | null, kind: string): void {
    const names = Object.keys((values.taskRoles ?? {}) as Values);
    if (names.join() !== [...this._cards.keys()].join()) {
      for (const [name, card] of this._cards) {
        if (!names.includes(name)) {
          card.node.remove();
          this._cards.delete(name);
        }
      }
      const ordered = names.map(name => [name, this._cards.get(name) ?? this._card(name)] as const);
      this._cards.clear();
      ordered.forEach(([name, card]) => this._cards.set(name, card));
      this._body.append(...ordered.map(([, card]) => card.node));
    }
    const skus = skusOf(values, this._skus);
    this._cards.forEach(card => card.show(values, { capabilities, kind, skus, roles: names.length }));
  }

  /** Images to choose from, beside those of the profiles, and the SKU types of virtual clusters. */
  offer({ images, skus }: IOffers): void {
    const all = [...new Set([...this.options.images, ...images])];
    this._images.replaceChildren(...all.map(value => h('option', { value })));
    this._skus = skus;
  }

  complain(of: (path: string) => IProblem[]): void {
    this._cards.forEach(card => card.complain(of));
    const own = of('/taskRoles').filter(each => (each.path ?? '').split('/').length <= 2);
    this._said.replaceChildren(...problemNodes(own));
  }

  private _card(name: string): RoleCard {
    return new RoleCard(name, this.options, this._images.id, {
      copy: () => this._copy(name),
      remove: () => this._remove(name),
      rename: to => this._rename(name, to)
    });
  }

  private _names(): string[] {
    return Object.keys((this.options.values().taskRoles ?? {}) as Values);
  }

  private _fresh(from: string): string {
    const names = this._names();
    const stem = from.replace(/\d+$/, '') || 'worker';
    let name = stem;
    for (let number = 2; names.includes(name); number += 1) {
      name = `${stem}${number}`;
    }
    return name;
  }

  private _add(): void {
    const values = this.options.values();
    const images = Array.isArray(values.prerequisites)
      ? (values.prerequisites as { name?: string; type?: string }[])
      : [];
    const image = images.find(each => each.type === 'dockerimage')?.name ?? 'image';
    const value = {
      instances: 1,
      dockerImage: image,
      resourcePerInstance: { cpu: this._standard('cpu'), memoryMB: this._standard('memoryMB'), gpu: 0 },
      commands: []
    };
    const name = this._fresh(this._names().includes('worker') ? 'role' : 'worker');
    this.options.edit({ op: 'add', path: `/taskRoles/${name}`, value });
  }

  private _standard(resource: string): unknown {
    return this.options.rows.find(row => row.path.endsWith(`/resourcePerInstance/${resource}`))?.default ?? 1;
  }

  private _copy(name: string): void {
    const fresh = this._fresh(name);
    const patch: IOperation[] = [{ op: 'copy', from: `/taskRoles/${name}`, path: `/taskRoles/${fresh}` }];
    for (const place of this._places(name)) {
      patch.push({ op: 'copy', from: `${place}/${escaped(name)}`, path: `${place}/${fresh}` });
    }
    this.options.edit(...patch);
  }

  private _remove(name: string): void {
    const patch: IOperation[] = [{ op: 'remove', path: `/taskRoles/${escaped(name)}` }];
    for (const place of this._places(name)) {
      patch.push(...removing(this.options.values(), `${place}/${escaped(name)}`));
    }
    this.options.edit(...patch);
  }

  private _places(name: string): string[] {
    return OF_ROLES.filter(place => valueAt(this.options.values(), `${place}/${escaped(name)}`) !== undefined);
  }

  private _rename(name: string, to: string): string {
    if (!NAME.test(to)) {
      return this.options.trans.__('Names of roles are lower case letters and digits, a letter first.');
    }
    if (to !== name && this._names().includes(to)) {
      return this.options.trans.__('There is another role of that name.');
    }
    if (to !== name) {
      const patch: IOperation[] = [
        { op: 'move', from: `/taskRoles/${escaped(name)}`, path: `/taskRoles/${escaped(to)}` }
      ];
      for (const place of this._places(name)) {
        patch.push({ op: 'move', from: `${place}/${escaped(name)}`, path: `${place}/${escaped(to)}` });
      }
      this.options.edit(...patch);
    }
    return '';
  }

  private readonly _cards = new Map<string, RoleCard>();
  private _skus: IOffers['skus'] = {};
  private readonly _body = h('div');
  private readonly _images = h('datalist');
  private readonly _said = h('div', { class: 'jp-PaiField-said' });
}

/** What a card shows beside the document. */
interface ISurroundings {
  capabilities: ICapabilities | null;
  /** Of the profile. */
  kind: string;
  skus: Record<string, ISku>;
  /** How many there are. */
  roles: number;
}

interface IRoleActions {
  copy(): void;
  remove(): void;
  /** Return what is against the name, or nothing. */
  rename(to: string): string;
}

class RoleCard {
  readonly node: HTMLElement;

  constructor(
    private readonly name: string,
    private readonly options: IRolesOptions,
    private readonly images: string,
    actions: IRoleActions
  ) {
    const { rows, trans } = options;
    const id = freshId();
    const title = h('input', { type: 'text', id, class: 'jp-mod-styled', spellcheck: 'false', value: name });
    const said = h('span', { class: 'jp-PaiField-said', role: 'status' });
    title.addEventListener('change', () => (said.textContent = actions.rename(title.value.trim())));
    this._remove = new Button('×', trans.__('Remove the role %1', name), actions.remove);
    const copy = new Button(trans.__('Copy'), trans.__('Copy the role %1', name), actions.copy);
    this._remove.node.setAttribute('aria-label', trans.__('Remove the role %1', name));
    copy.node.setAttribute('aria-label', trans.__('Copy the role %1', name));
    const basic = h('div', { class: 'jp-PaiRole-basic' });
    const more = h('div', { class: 'jp-PaiRole-more' });
    // What takes the whole width comes after what stands side by side.
    const ordered = [...rows].sort((one, other) => Number(isWide(one)) - Number(isWide(other)));
    for (const row of ordered) {
      const place = row.level === 'basic' ? basic : more;
      place.append(this._row(row).node);
      if (row.path === IMAGE) {
        place.append(this._auth());
      }
    }
    this.node = h(
      'fieldset',
      { class: 'jp-PaiRole', 'data-role': name },
      h('legend', {}, trans.__('Role %1', name)),
      h(
        'div',
        { class: 'jp-PaiRole-head' },
        h('label', { for: id }, trans.__('Role')),
        title,
        said,
        copy.node,
        this._remove.node
      ),
      basic,
      h('details', { class: 'jp-PaiForm-fold' }, h('summary', {}, trans.__('customize'), this._summary), more)
    );
  }

  show(values: Values, { capabilities, kind, skus, roles }: ISurroundings): void {
    this._remove.reason = roles < 2 ? this.options.trans.__('A job has at least one role') : '';
    for (const [row, field] of this._fields) {
      const value = valueAt(values, this._place(row, values));
      field.show(value);
      field.node.hidden = !isShown(row, kind, value);
      if (row.path === SKU) {
        this._sku?.show(value, skus);
      }
      if (field instanceof Field && CAPACITY[row.path]) {
        field.aside = this._capacity(CAPACITY[row.path], capabilities);
      }
    }
    this._showAuth(values);
    const resources = (valueAt(values, `/taskRoles/${escaped(this.name)}/resourcePerInstance`) ?? {}) as Values;
    const { cpu, memoryMB } = resources;
    const said = [
      typeof cpu === 'number' ? this.options.trans._n('%1 CPU', '%1 CPUs', cpu) : '',
      typeof memoryMB === 'number' ? memoryWords(memoryMB) : ''
    ].filter(Boolean);
    this._summary.textContent = said.length ? ` · ${said.join(' · ')}` : '';
  }

  complain(of: (path: string) => IProblem[]): void {
    const values = this.options.values();
    for (const [row, field] of this._fields) {
      // What is wrong with the name of the image is said where the image is.
      const named = row.path === IMAGE ? of(`/taskRoles/${escaped(this.name)}/dockerImage`) : [];
      field.complain([...named, ...of(this._place(row, values))]);
    }
  }

  private _place(row: IRow, values: Values): string {
    if (row.path.startsWith('/prerequisites/')) {
      return row.path.replace('*', String(imageIndex(values, this.name)));
    }
    return row.path.replace('*', escaped(this.name));
  }

  private _row(row: IRow): Field | Table {
    const { trans, values, edit } = this.options;
    const path = this._place(row, values());
    const made =
      row.widget === 'table'
        ? new Table(row, path, trans, edit)
        : new Field(row, path, trans, value => edit(...this._setting(row, value)));
    if (row.path === IMAGE && made instanceof Field) {
      made.input.setAttribute('list', this.images);
    }
    this._fields.set(row, made);
    if (row.path === SKU && made instanceof Field) {
      this._sku = new SkuPart(made, this.name, trans, values, edit);
    }
    return made;
  }

  private _setting(row: IRow, value: unknown): IOperation[] {
    const values = this.options.values();
    if (row.path === IMAGE) {
      return settingImage(values, this.name, value as string | undefined, standardImage(this.options));
    }
    const path = this._place(row, values);
    const needed = ['/instances', '/cpu', '/memoryMB', '/gpu'].some(end => row.path.endsWith(end));
    if (value === undefined && needed) {
      return [{ op: 'replace', path, value: row.default }];
    }
    if (row.path.endsWith('/commands')) {
      return [{ op: 'replace', path, value: value ?? [] }];
    }
    const patch = setting(values, path, value);
    const limit = `/extras/paijupyter/roles/${escaped(this.name)}/limitMemory`;
    if (row.path.endsWith('/memoryMB') && valueAt(values, limit) === false) {
      // Until now nobody had said how much; who says it means it.
      patch.push({ op: 'remove', path: limit });
    }
    return patch;
  }

  private _capacity(resource: string, capabilities: ICapabilities | null): string {
    const { trans } = this.options;
    const all = capabilities?.capacity?.[resource];
    const free = capabilities?.free?.[resource];
    if (all === undefined) {
      return '';
    }
    const text = (amount: number): string =>
      resource === 'memoryMB' ? memoryWords(Math.floor(amount)) : String(amount);
    return free === undefined
      ? trans.__('The profile has %1.', text(all))
      : trans.__('The profile has %1, %2 free.', text(all), text(free));
  }

  /** Registry credentials (O8): the password is a secret, named here and never typed here. */
  private _auth(): HTMLElement {
    const { trans, values, edit } = this.options;
    const labels: [keyof IAuth, string][] = [
      ['username', trans.__('User')],
      ['secret', trans.__('Secret that is the password')],
      ['registryuri', trans.__('Registry')]
    ];
    const commit = (): void => {
      const auth = Object.fromEntries(
        labels.map(([key]) => [key, this._authInputs[key].value.trim()])
      ) as unknown as IAuth;
      auth.secret = auth.secret.replace(/\W/g, '_');
      edit(...settingAuth(values(), imageIndex(values(), this.name), auth));
    };
    const fields = labels.map(([key, label]) => {
      const id = freshId();
      const input = h('input', { type: 'text', id, class: 'jp-mod-styled', spellcheck: 'false', autocomplete: 'off' });
      input.placeholder = { username: '', secret: 'REGISTRY_PASSWORD', registryuri: 'docker.io' }[key];
      input.addEventListener('change', commit);
      this._authInputs[key] = input;
      return h('div', { class: 'jp-PaiField' }, h('label', { for: id }, label), input);
    });
    return h(
      'details',
      { class: 'jp-PaiForm-fold' },
      h('summary', {}, trans.__('Registry credentials')),
      h('div', { class: 'jp-PaiRole-auth' }, ...fields)
    );
  }

  private _showAuth(values: Values): void {
    const auth = authOf(values, imageIndex(values, this.name));
    for (const [key, input] of Object.entries(this._authInputs)) {
      if (input !== document.activeElement) {
        input.value = auth[key as keyof IAuth];
      }
    }
  }

  private readonly _fields = new Map<IRow, Field | Table>();
  private readonly _authInputs = {} as Record<keyof IAuth, HTMLInputElement>;
  private readonly _remove: Button;
  private _sku: SkuPart | null = null;
  private readonly _summary = h('span', { class: 'jp-PaiField-aside' });
}

function isWide(row: IRow): boolean {
  return row.widget === 'lines' || row.widget === 'table';
}

function standardImage(options: IRolesOptions): string {
  const row = options.rows.find(each => each.path === IMAGE);
  return options.images[0] ?? (row ? standardText(row) : '') ?? '';
}

/** What the SKU type of a role means: what a cell of it has, and the resources of as many as are asked for. */

import type { TranslationBundle } from '@jupyterlab/translation';

import { h } from './dom';
import { IOffers, IOperation, ISku, Values } from './formapi';
import { escaped, setting, valueAt } from './formdocument';
import { Field, offerNames } from './formfields';
import { memoryWords } from './quantities';

export const SKU = '/extras/hivedScheduler/taskRoles/*/skuType';
const SKUS = '/extras/hivedScheduler/taskRoles/*/skuNum';

/** The SKU types of the virtual cluster that the document names; of all where it names none. */
export function skusOf(values: Values, offered: IOffers['skus']): Record<string, ISku> {
  const named = valueAt(values, '/defaults/virtualCluster');
  return typeof named === 'string' && named in offered ? offered[named] : Object.assign({}, ...Object.values(offered));
}

/** The part of a role's card beside its SKU type. */
export class SkuPart {
  constructor(
    private readonly field: Field,
    private readonly role: string,
    private readonly trans: TranslationBundle,
    private readonly values: () => Values,
    edit: (...patch: IOperation[]) => void
  ) {
    this._take.textContent = trans.__('Take its resources');
    this._take.addEventListener('click', () => edit(...this._resources()));
    field.node.append(this._take);
  }

  show(value: unknown, skus: Record<string, ISku>): void {
    const { trans } = this;
    offerNames(this.field, Object.keys(skus));
    this._sku = skus[String(value)];
    const { gpu, cpu, memoryMB } = this._sku ?? {};
    const said = [
      gpu ? trans._n('%1 GPU', '%1 GPUs', gpu) : '',
      cpu ? trans._n('%1 CPU', '%1 CPUs', cpu) : '',
      memoryMB ? memoryWords(memoryMB) : ''
    ].filter(Boolean);
    this._take.hidden = !said.length;
    this.field.aside = said.length ? trans.__('Each cell has %1.', said.join(', ')) : '';
  }

  private _resources(): IOperation[] {
    const values = this.values();
    const path = `/taskRoles/${escaped(this.role)}/resourcePerInstance`;
    const cells = valueAt(values, SKUS.replace('*', escaped(this.role)));
    const count = typeof cells === 'number' ? cells : 1;
    const given = Object.entries(this._sku ?? {}).filter(([, amount]) => amount !== null);
    return given.flatMap(([name, amount]) => setting(values, `${path}/${name}`, Math.floor(Number(amount) * count)));
  }

  private _sku: ISku | undefined = undefined;
  private readonly _take = h('button', {
    type: 'button',
    class: 'jp-Pai-link',
    hidden: true
  });
}

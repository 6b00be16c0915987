/** What changed between two runs, as a list. */

import type { TranslationBundle } from '@jupyterlab/translation';

import { h } from './dom';
import { IChanged, IDifference, IJob } from './model';
import { number } from './words';

const MOST = 40;
const SIGNS: Record<string, string> = { added: '+', removed: '−', changed: '±' };

/** `lr: 0.1 → 0.2`; a side that does not have it is a dash. */
export function changedText({ name, before, after }: IChanged): string {
  const side = (value: unknown): string => (value === undefined || value === null ? '–' : number(value));
  return `${name}: ${side(before)} → ${side(after)}`;
}

export function changesNodes(found: IDifference, previous: IJob, trans: TranslationBundle): HTMLElement[] {
  const code = found.code.map(each => (each.path ? `${SIGNS[each.change] ?? ''} ${each.path}` : (each.message ?? '')));
  const rows: [string, string[]][] = [
    [trans.__('files'), code],
    [trans.__('commands'), found.commands.map(each => each.name)],
    [trans.__('parameters'), found.parameters.map(changedText)],
    [trans.__('packages'), (found.environment.packages ?? []).map(changedText)],
    [trans.__('images'), found.images.map(changedText)],
    [trans.__('resources'), found.resources.map(changedText)],
    [trans.__('data'), found.data.map(each => each.name)],
    [trans.__('metrics'), found.results.metrics.map(changedText)]
  ];
  const filled = rows.filter(([, values]) => values.length);
  const head = h('div', {}, trans.__('Since') + ' ', h('code', {}, previous.name), filled.length ? ':' : '');
  if (!filled.length) {
    return [head, h('div', {}, trans.__('Nothing has changed.'))];
  }
  const shown = filled.flatMap(([label, values]) => {
    const rest = values.length - MOST;
    const said = [...values.slice(0, MOST), ...(rest > 0 ? [trans.__('%1 more', rest)] : [])];
    return [h('dt', {}, label), h('dd', {}, ...said.map(value => h('div', {}, value)))];
  });
  return [head, h('dl', { class: 'jp-PaiCard-rows' }, ...shown)];
}

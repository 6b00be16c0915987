/** Progress and metrics of a card: a bar, and of each metric its value and its course. */

import { h, sparkline } from './dom';
import { IJob } from './model';
import { IProgress, number } from './words';

export function metricsNodes(job: IJob, far: IProgress | null, names: string[]): (HTMLElement | null)[] {
  const { last = {}, series = {} } = job.metrics ?? {};
  const bar =
    far &&
    h(
      'span',
      { class: 'jp-PaiCard-metric' },
      `${far.name} `,
      h('strong', {}, `${far.done}/${far.total}`),
      ' ',
      h(
        'span',
        {
          class: 'jp-PaiCard-progress',
          role: 'progressbar',
          'aria-label': far.name,
          'aria-valuemin': 0,
          'aria-valuenow': far.done,
          'aria-valuemax': far.total
        },
        h('span', { style: `width:${((100 * far.done) / far.total).toFixed(1)}%` })
      )
    );
  const metrics = names.map(name =>
    h(
      'span',
      { class: 'jp-PaiCard-metric' },
      `${name} `,
      h('strong', {}, number(last[name])),
      ' ',
      sparkline(series[name] ?? [])
    )
  );
  return [bar, ...metrics];
}

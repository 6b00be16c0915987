/** Asks before a cell is submitted as a job: what travels, which cells are in and why, what is against it. */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';

import { requestId } from './api';
import { errorText, IContext } from './context';
import { h, rich } from './dom';
import { CommandIDs } from './ids';
import { ApiError, IJob } from './model';
import { INotebookPanel } from './panel';
import { size } from './words';

interface IProblem {
  severity: 'error' | 'warning' | 'hint';
  code: string;
  message: string;
  hint?: string;
}

interface IMade {
  document: string;
  package: string;
  files: number;
  bytes: number;
  kernelspec: string | null;
  cell: { id: string; hash: string; number: number } | null;
  cells: { cell: number; included: boolean; why: string }[];
  problems: IProblem[];
}

interface IPlanned {
  ok: boolean;
  name: string;
  profile: string | null;
  starts: string;
  parameters: Record<string, unknown>;
  problems: IProblem[];
}

const SIGNS = { error: '✕', warning: '⚠', hint: 'ℹ' };
type Order = 'page' | 'run';

/** Save the notebook, show what would be submitted, and submit it if that is wanted. */
export async function runCell(
  context: IContext,
  panel: INotebookPanel,
  localPath: (path: string) => string
): Promise<void> {
  const { trans } = context;
  const cell = panel.content.activeCell;
  if (!cell) {
    return;
  }
  const number = panel.content.widgets.indexOf(cell) + 1;
  const title = trans.__('Run cell %1 as a job', number);
  let order: Order | undefined;
  for (;;) {
    try {
      if (panel.context.model.dirty) {
        await panel.context.save(); // What runs is what the file has.
      }
      const path = localPath(panel.context.path);
      const request = await prepare(context, path, cell.model.id, order);
      const chosen = await ask(context, title, request);
      if (chosen === 'submit') {
        const body = { ...request.body, requestId: requestId() };
        const job = await context.api.ask<IJob>('jobs', 'POST', body);
        context.store.take(job);
        context.inView.add(job.id); // Its card comes now: its end is no news.
        await context.commands.execute(CommandIDs.openJob, { id: job.id });
      }
      if (chosen !== 'page' && chosen !== 'run') {
        return;
      }
      order = chosen;
    } catch (error) {
      await showDialog({
        title,
        body: new Widget({ node: h('div', { class: 'jp-PaiRun' }, ...problemNodes(error)) }),
        buttons: [Dialog.okButton({ label: trans.__('Close') })]
      });
      return;
    }
  }
}

interface IRequest {
  made: IMade;
  plan: IPlanned | null;
  problems: IProblem[];
  body: Record<string, unknown>;
}

async function prepare(context: IContext, path: string, id: string, order?: Order): Promise<IRequest> {
  const { api } = context;
  const folder = path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '';
  const asked = { notebook: path, folder, cells: [id], ...(order ? { order } : {}) };
  const made = await api.ask<IMade>('document/cells', 'POST', asked);
  const body = {
    document: made.document,
    package: made.package,
    context: { folder, notebook: path, kernelspec: made.kernelspec, cell: made.cell, surface: 'form' }
  };
  const against = made.problems.filter(each => each.severity === 'error');
  if (against.length) {
    return { made, plan: null, problems: made.problems, body };
  }
  const plan = await api.ask<IPlanned>('plan', 'POST', body);
  const known = new Set(made.problems.map(each => each.message));
  return { made, plan, problems: [...made.problems, ...plan.problems.filter(each => !known.has(each.message))], body };
}

async function ask(context: IContext, title: string, request: IRequest): Promise<string> {
  const { trans } = context;
  const isOrder = request.problems.some(each => each.code === 'run-order');
  const ok = !!request.plan?.ok && !request.problems.some(each => each.severity === 'error');
  const buttons = [Dialog.cancelButton({ label: ok ? trans.__('Cancel') : trans.__('Close') })];
  if (isOrder) {
    buttons.push(Dialog.okButton({ label: trans.__('In the order of the page'), actions: ['page'] }));
    buttons.push(Dialog.okButton({ label: trans.__('As the cells ran'), actions: ['run'] }));
  } else if (ok) {
    buttons.push(Dialog.okButton({ label: trans.__('Submit 1 task'), actions: ['submit'] }));
  }
  const answer = await showDialog({
    title,
    body: new Widget({ node: view(context, request, ok) }),
    buttons,
    defaultButton: buttons.length - 1
  });
  return answer.button.accept ? (answer.button.actions[0] ?? '') : '';
}

function view(context: IContext, { made, plan, problems }: IRequest, ok: boolean): HTMLElement {
  const { trans } = context;
  const verdict = ok ? `✓ ${trans.__('can be submitted')}` : `✕ ${trans.__('cannot be submitted')}`;
  const parameters = Object.entries(plan?.parameters ?? {}).map(
    ([name, value]) => `${name} = ${JSON.stringify(value)}`
  );
  const rows: [string, string][] = [
    [trans.__('profile'), plan?.profile ?? ''],
    [trans.__('starts'), plan?.starts ?? ''],
    [
      trans.__('package'),
      `${made.package.slice(0, 12)}: ${trans._n('%1 file', '%1 files', made.files)}, ${size(made.bytes)}`
    ],
    [trans.__('parameters'), parameters.join(', ')]
  ];
  return h(
    'div',
    { class: 'jp-PaiRun' },
    h('p', { class: 'jp-PaiRun-verdict', 'data-ok': String(ok) }, verdict),
    ...problems.map(problemNode),
    h(
      'dl',
      { class: 'jp-PaiCard-rows' },
      ...rows.filter(([, value]) => value).flatMap(([label, value]) => [h('dt', {}, label), h('dd', {}, value)])
    ),
    h(
      'ul',
      { class: 'jp-PaiRun-cells', 'aria-label': trans.__('Cells') },
      ...made.cells.map(each =>
        h(
          'li',
          { 'data-in': String(each.included) },
          `${each.included ? '+' : '−'} ${trans.__('cell %1', each.cell)}  `,
          ...rich(each.why)
        )
      )
    )
  );
}

function problemNode(problem: IProblem): HTMLElement {
  const said = [problem.message, problem.hint].filter(Boolean).join(' ');
  return h(
    'p',
    { class: 'jp-PaiRun-problem', 'data-severity': problem.severity },
    `${SIGNS[problem.severity]} `,
    ...rich(said)
  );
}

function problemNodes(error: unknown): (Node | string)[] {
  const problems = error instanceof ApiError ? ((error as { problems?: IProblem[] }).problems ?? []) : [];
  return problems.length ? problems.map(problemNode) : [h('p', {}, ...rich(errorText(error)))];
}

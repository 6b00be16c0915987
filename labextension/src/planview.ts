/** The plan beside a form: what would be submitted, and everything that is against it. */

import type { TranslationBundle } from '@jupyterlab/translation';

import { errorText } from './context';
import { h, rich, setAttribute, setText } from './dom';
import { FormApi, IPackage, IPlan } from './formapi';
import { IProblem } from './model';
import { memoryWords } from './quantities';
import { size } from './words';

const MOST_FILES = 200;
const MOST_LEFT_OUT = 50;
const MOST_PARAMETERS = 12;
const HASH = 12;
const SIGNS = { error: '✕', warning: '⚠', hint: 'ℹ' };

/** `5 tasks, 4 GPUs`, as the button that submits says it. */
export function tasksText(plan: IPlan, trans: TranslationBundle): string {
  const tasks = plan.roles.reduce((sum, role) => sum + role.instances, 0);
  const gpus = plan.roles.reduce((sum, role) => sum + role.instances * (role.gpu ?? 0), 0);
  const said = [trans._n('%1 task', '%1 tasks', tasks)];
  if (gpus) {
    said.push(trans._n('%1 GPU', '%1 GPUs', gpus));
  }
  return said.join(', ');
}

/** `2 Jobs`, `1 Service`: a cluster's words for its objects are the same in all languages. */
function objectsText(kind: string, count: number, trans: TranslationBundle): string {
  if (kind === 'process') {
    return trans._n('%1 process', '%1 processes', count);
  }
  if (kind === 'package') {
    return trans._n('%1 package', '%1 packages', count);
  }
  return count === 1 ? `1 ${kind}` : `${count} ${kind.replace(/([^aeiou])y$/, '$1ie').replace(/(s|x|ch|sh)$/, '$1e')}s`;
}

export class PlanView {
  readonly node: HTMLElement;

  /**
   * @param jump - goes to the place of a problem in the form or the text.
   * @param look - packages the folder anew.
   */
  constructor(
    private readonly api: FormApi,
    private readonly trans: TranslationBundle,
    private readonly jump: (problem: IProblem) => void,
    look: () => void
  ) {
    this._look.textContent = trans.__('Look again');
    this._look.title = trans.__('Look at the files of the folder again');
    this._look.addEventListener('click', look);
    this.node = h(
      'section',
      { class: 'jp-PaiPlan', 'aria-label': trans.__('Plan') },
      h('h3', { class: 'jp-PaiPlan-head' }, this._name, this._verdict),
      this._count,
      this._body
    );
    this._files.addEventListener('toggle', () => void this._fillFiles());
  }

  /** Say that the plan is not yet about what the form says now. */
  set stale(stale: boolean) {
    setAttribute(this.node, 'aria-busy', stale ? 'true' : null);
  }

  show(plan: IPlan, problems: IProblem[], pack: IPackage | null): void {
    const { trans } = this;
    const ok = plan.ok && !problems.some(each => each.severity === 'error');
    this._name.replaceChildren(
      h('code', {}, plan.name.replace(/-[a-z0-9]{6}$/, '')),
      ` ${trans.__('on %1', plan.profile ?? '')}`
    );
    this._say(ok);
    this._package = plan.package?.sha256 ?? null;
    this._body.replaceChildren(
      ...[
        this._tasks(plan),
        plan.starts && row(trans.__('starts'), plan.starts),
        this._estimate(plan),
        this._packageRow(plan, pack),
        this._parameters(plan),
        this._secrets(plan),
        ...plan.data.map(each =>
          row(trans.__('data'), `${each.uri}${each.bytes ? ` (${size(each.bytes)})` : ''} → ${each.read}`)
        ),
        plan.outputs.length && row(trans.__('outputs'), plan.outputs.join(', ')),
        this._problems(problems),
        this._objects(plan)
      ].filter((each): each is HTMLElement => !!each)
    );
  }

  /** Say why there is no plan. */
  fail(problems: IProblem[], error: unknown): void {
    this._say(false);
    const said = error ? [h('p', { class: 'jp-PaiField-said' }, ...rich(errorText(error)))] : [];
    this._body.replaceChildren(...said, this._problems(problems));
  }

  private _say(ok: boolean): void {
    this._verdict.textContent = ok
      ? `✓ ${this.trans.__('can be submitted')}`
      : `✕ ${this.trans.__('cannot be submitted')}`;
    this._verdict.dataset.ok = String(ok);
  }

  private _tasks(plan: IPlan): HTMLElement {
    const { trans } = this;
    const roles = plan.roles.map(role => {
      const each = [
        role.gpu ? trans._n('%1 GPU', '%1 GPUs', role.gpu) : '',
        role.cpu ? trans._n('%1 CPU', '%1 CPUs', role.cpu) : '',
        role.memoryMB ? memoryWords(role.memoryMB) : ''
      ].filter(Boolean);
      return `${role.name} ×${role.instances}${each.length ? ` (${each.join(', ')})` : ''}`;
    });
    return row(tasksText(plan, trans), roles.join(', '));
  }

  private _estimate(plan: IPlan): HTMLElement | null {
    const { trans } = this;
    const { gpuHours, cost, atMost, currency } = (plan.estimate ?? {}) as Record<string, number | string | null>;
    const said = [
      typeof gpuHours === 'number' && trans.__('est. %1 GPU-h', gpuHours),
      typeof cost === 'number' && `${cost} ${currency}`,
      typeof atMost === 'number' && trans.__('at most %1 %2', atMost, String(currency))
    ].filter(Boolean);
    return said.length ? row(trans.__('cost'), said.join(' · ')) : null;
  }

  private _packageRow(plan: IPlan, pack: IPackage | null): HTMLElement | null {
    const { trans } = this;
    if (!plan.package) {
      return null;
    }
    const { sha256, files, bytes } = plan.package;
    const said = `${sha256.slice(0, HASH)}… · ${trans._n('%1 file', '%1 files', files)}, ${size(bytes)}`;
    this._files.replaceChildren(h('summary', {}, said), this._list);
    this._list.replaceChildren();
    const out = pack?.excluded.filter(each => each.size || each.hint) ?? [];
    if (this._files.open) {
      void this._fillFiles();
    }
    const left = out.length
      ? h(
          'details',
          {},
          h('summary', {}, trans._n('%1 left out', '%1 left out', out.length)),
          h(
            'ul',
            { class: 'jp-PaiPlan-files' },
            ...out
              .slice(0, MOST_LEFT_OUT)
              .map(each => h('li', {}, h('span', {}, each.path), h('span', {}, `${each.reason}, ${size(each.size)}`)))
          )
        )
      : null;
    return h(
      'div',
      { class: 'jp-PaiPlan-row' },
      h('span', { class: 'jp-PaiPlan-label' }, trans.__('package')),
      h('div', {}, this._files, left, this._look)
    );
  }

  private async _fillFiles(): Promise<void> {
    const sha256 = this._package;
    if (!this._files.open || !sha256) {
      return;
    }
    try {
      const files = await this.api.files(sha256);
      if (sha256 === this._package) {
        const rest = files.length - MOST_FILES;
        this._list.replaceChildren(
          ...files
            .slice(0, MOST_FILES)
            .map(each => h('li', {}, h('span', {}, each.path), h('span', {}, size(each.size)))),
          ...(rest > 0 ? [h('li', {}, this.trans.__('%1 more', rest))] : [])
        );
      }
    } catch (error) {
      this._list.replaceChildren(h('li', {}, errorText(error)));
    }
  }

  private _parameters(plan: IPlan): HTMLElement | null {
    const { trans } = this;
    const given = Object.entries(plan.parameters).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
    if (given.length <= MOST_PARAMETERS) {
      return given.length ? row(trans.__('parameters'), given.join(', ')) : null;
    }
    // Folded: the problems below them are to be seen.
    this._given.replaceChildren(
      h('summary', {}, trans._n('%1 parameter', '%1 parameters', given.length)),
      h('ul', { class: 'jp-PaiPlan-files' }, ...given.map(each => h('li', {}, each)))
    );
    return h(
      'div',
      { class: 'jp-PaiPlan-row' },
      h('span', { class: 'jp-PaiPlan-label' }, trans.__('parameters')),
      this._given
    );
  }

  private _secrets(plan: IPlan): HTMLElement | null {
    const { trans } = this;
    const said = plan.secretNames.map(name => {
      const reference = plan.secretReferences[name] ?? 'ask';
      return `${name} (${reference === 'ask' ? trans.__('asked for at submission') : reference.split(':')[0]})`;
    });
    return said.length ? row(trans.__('secrets'), said.join(', ')) : null;
  }

  private _problems(problems: IProblem[]): HTMLElement {
    const count = (severity: string): number => problems.filter(each => each.severity === severity).length;
    const [errors, warnings] = [count('error'), count('warning')];
    const told = [
      errors ? this.trans._n('%1 error', '%1 errors', errors) : '',
      warnings ? this.trans._n('%1 warning', '%1 warnings', warnings) : ''
    ];
    setText(this._count, told.filter(Boolean).join(', '));
    const items = problems.map(problem => {
      const place = placeText(problem, this.trans);
      const button = place && h('button', { type: 'button', class: 'jp-Pai-link' }, place);
      if (button) {
        button.title = this.trans.__('Go to the place');
        button.addEventListener('click', () => this.jump(problem));
      }
      return h(
        'li',
        { 'data-severity': problem.severity, 'data-code': problem.code },
        h('span', { 'aria-label': severityText(problem, this.trans), role: 'img' }, SIGNS[problem.severity]),
        ' ',
        button,
        button && ' ',
        ...rich(problem.message),
        problem.hint ? h('span', { class: 'jp-PaiPlan-hint' }, ' ', ...rich(problem.hint)) : null
      );
    });
    return h('ul', { class: 'jp-PaiPlan-problems' }, ...items);
  }

  private _objects(plan: IPlan): HTMLElement | null {
    const { trans } = this;
    if (!plan.objects.length) {
      return null;
    }
    const kinds = new Map<string, number>();
    for (const each of plan.objects) {
      const kind = String(each.kind ?? '');
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    }
    const said = [...kinds].map(([kind, count]) => objectsText(kind, count, trans)).join(', ');
    const text = plan.submittedDocument || JSON.stringify(plan.objects, null, 2);
    return h(
      'div',
      { class: 'jp-PaiPlan-row' },
      h('span', { class: 'jp-PaiPlan-label' }, trans.__('objects')),
      h(
        'div',
        {},
        h('span', { class: 'jp-PaiPlan-objects' }, said),
        h(
          'details',
          {},
          h('summary', {}, trans.__('show them')),
          h(
            'ul',
            { class: 'jp-PaiPlan-files' },
            ...plan.objects
              .slice(0, MOST_FILES)
              .map(each => h('li', {}, `${String(each.kind)} ${String(each.name ?? '')}`))
          )
        ),
        h('details', {}, h('summary', {}, trans.__('show YAML')), h('pre', { tabindex: 0 }, text))
      )
    );
  }

  private readonly _name = h('strong', { class: 'jp-PaiPlan-name' });
  private readonly _verdict = h('span', { class: 'jp-PaiPlan-verdict', role: 'status' });
  private readonly _count = h('div', { class: 'jp-PaiPlan-count', role: 'status' });
  private readonly _body = h('div', { class: 'jp-PaiPlan-body' });
  private readonly _files = h('details');
  private readonly _given = h('details');
  private readonly _list = h('ul', { class: 'jp-PaiPlan-files' });
  private readonly _look = h('button', { type: 'button', class: 'jp-Pai-link' });
  private _package: string | null = null;
}

function row(label: string, text: string): HTMLElement {
  return h('div', { class: 'jp-PaiPlan-row' }, h('span', { class: 'jp-PaiPlan-label' }, label), h('span', {}, text));
}

function severityText({ severity }: IProblem, trans: TranslationBundle): string {
  return { error: trans.__('error'), warning: trans.__('warning'), hint: trans.__('hint') }[severity];
}

function placeText(problem: IProblem, trans: TranslationBundle): string {
  if (problem.file) {
    return problem.line ? `${problem.file}:${problem.line}` : problem.file;
  }
  if (problem.path) {
    return problem.path.split('/').slice(1).join(' › ');
  }
  return problem.line ? trans.__('line %1', problem.line) : '';
}

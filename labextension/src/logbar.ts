/** The toolbar of a log view: which task, search, and what can be done, each also by a key. */

import type { TranslationBundle } from '@jupyterlab/translation';

import { Button, h, setAttribute, setText } from './dom';
import { IJob } from './model';

/** So many tasks of a role can be chosen. */
const MOST_TASKS = 1000;

/** What the toolbar can do. */
export interface ILogActions {
  choose(task: string): void;
  follow(on: boolean): void;
  times(on: boolean): void;
  wrap(on: boolean): void;
  fold(on: boolean): void;
  goToFailure(): void;
  copyLink(): void;
  copy(): void;
  download(): void;
}

/** What is switched on when a view opens. */
export interface ISwitches {
  wrap: boolean;
  fold: boolean;
}

export class LogBar {
  readonly node: HTMLElement;

  constructor(
    private readonly trans: TranslationBundle,
    search: HTMLElement,
    private readonly actions: ILogActions,
    on: ISwitches
  ) {
    this._select.setAttribute('aria-label', trans.__('Task'));
    this._select.addEventListener('change', () => actions.choose(this._select.value));
    this._follow = toggle(trans.__('Follow'), trans.__('Stay at the end while the log grows'), actions.follow);
    this._times = toggle(trans.__('Times'), trans.__('Show when lines were written (t)'), actions.times);
    const wrap = toggle(trans.__('Wrap'), trans.__('Wrap long lines'), actions.wrap, on.wrap);
    const said = trans.__('Show lines that several tasks print alike once, with how many tasks print them');
    this._fold = toggle(trans.__('Fold'), said, actions.fold, on.fold);
    this._fold.hidden = true;
    this._failure = new Button(
      trans.__('First failure'),
      trans.__('Go to the last line of the task that failed first (e)'),
      actions.goToFailure
    );
    this._failure.node.hidden = true;
    setAttribute(this._failure.node, 'aria-keyshortcuts', 'e');
    setAttribute(this._times, 'aria-keyshortcuts', 't');
    const link = new Button(
      trans.__('Copy link'),
      trans.__('Copy the address of the line that is marked, or of the first one in view (l)'),
      actions.copyLink
    );
    setAttribute(link.node, 'aria-keyshortcuts', 'l');
    const copy = new Button(trans.__('Copy'), trans.__('Copy the selection, or the lines loaded'), actions.copy);
    const download = new Button(trans.__('Download'), trans.__('Save the whole log as a file'), actions.download);
    this.node = h(
      'div',
      { class: 'jp-PaiLog-bar', role: 'toolbar', 'aria-label': trans.__('Log') },
      this._select,
      search,
      this._failure.node,
      this._follow,
      this._times,
      wrap,
      this._fold,
      link.node,
      copy.node,
      download.node,
      this._said
    );
  }

  /** Do what a key stands for; say whether it stands for something. */
  press(key: string): boolean {
    if (key === 'e' && !this._failure.node.hidden) {
      this.actions.goToFailure();
    } else if (key === 't') {
      this._times.click();
    } else if (key === 'l') {
      this.actions.copyLink();
    } else {
      return false;
    }
    return true;
  }

  /** Say in a word what was done. */
  say(text: string): void {
    setText(this._said, text);
  }

  drawFollow(follow: boolean): void {
    setAttribute(this._follow, 'aria-pressed', String(follow));
  }

  /** Draw the tasks of a job; the one that failed first is marked. */
  drawTasks(job: IJob, chosen: string): void {
    const { trans } = this;
    const keys = Object.entries(job.roles).flatMap(([role, { instances }]) =>
      Array.from({ length: Math.min(instances, MOST_TASKS) }, (_, index) => `${role}-${index}`)
    );
    const failed = failedTask(job);
    const drawn = [...keys, failed].join();
    if (this._select.dataset.keys !== drawn) {
      this._select.dataset.keys = drawn;
      const name = (key: string): string => (key === failed ? trans.__('✕ %1 – failed first', key) : key);
      const all = keys.length > 1 ? trans.__('all tasks') : name(keys[0]);
      const options = keys.length > 1 ? keys.map(key => h('option', { value: key }, name(key))) : [];
      this._select.replaceChildren(h('option', { value: '' }, all), ...options);
    }
    this._select.value = chosen;
    this._fold.hidden = chosen !== '' || keys.length < 2;
    this._failure.node.hidden = failed === null;
  }

  private readonly _select = h('select', { class: 'jp-PaiLog-select' });
  private readonly _said = h('span', { class: 'jp-PaiLog-said', role: 'status' });
  private readonly _follow: HTMLButtonElement;
  private readonly _times: HTMLButtonElement;
  private readonly _fold: HTMLButtonElement;
  private readonly _failure: Button;
}

/** Key of the task that decided a failure, or null. */
export function failedTask(job: IJob | undefined): string | null {
  return job?.failedTask ? `${job.failedTask.role}-${job.failedTask.index}` : null;
}

function toggle(label: string, title: string, change: (on: boolean) => void, isOn = false): HTMLButtonElement {
  const button = h('button', { type: 'button', class: 'jp-Pai-button', title, 'aria-pressed': String(isOn) }, label);
  button.addEventListener('click', () => {
    const on = button.getAttribute('aria-pressed') !== 'true';
    setAttribute(button, 'aria-pressed', String(on));
    change(on);
  });
  return button;
}

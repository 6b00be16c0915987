/** How many jobs run and wait, in the status bar. */

import { Widget } from '@lumino/widgets';

import { IContext } from './context';
import { h, setAttribute, setText } from './dom';
import { CommandIDs } from './ids';

export class JobCount extends Widget {
  constructor(private readonly context: IContext) {
    super();
    this.addClass('jp-PaiCount');
    this._button.addEventListener('click', () => void context.commands.execute(CommandIDs.openJobs));
    this.node.append(this._button);
    context.store.changed.connect(this._later, this);
    context.store.groupChanged.connect(this._later, this);
    context.store.listed.connect(this._later, this);
    this._draw();
  }

  /** A page of jobs is a hundred changes: they are counted once. */
  private _later(): void {
    this._frame ||= requestAnimationFrame(() => {
      this._frame = 0;
      this._draw();
    });
  }

  private _draw(): void {
    const { trans, store } = this.context;
    const { running, waiting } = store.counts();
    this.setHidden(running + waiting === 0);
    const said = [
      running ? trans._n('%1 job runs', '%1 jobs run', running, running) : '',
      waiting ? trans.__('%1 waiting', waiting) : ''
    ];
    setText(this._button, said.filter(Boolean).join(' · '));
    setAttribute(this._button, 'title', trans.__('Show jobs'));
  }

  private _frame = 0;
  private readonly _button = h('button', { type: 'button', class: 'jp-PaiCount-button' });
}

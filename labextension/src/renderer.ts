/** Draws the output of a cell that holds a reference to a job: live, or the snapshot saved beside it. */

import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Panel, Widget } from '@lumino/widgets';

import type { JobCard } from './card';
import { IContext } from './context';
import { h } from './dom';
import { MIME } from './ids';
import { isGone, isMissing } from './model';

export class JobRenderer extends Panel implements IRenderMime.IRenderer {
  constructor(
    private readonly context: IContext,
    private readonly rendermime: IRenderMimeRegistry
  ) {
    super();
    context.store.connectionChanged.connect(this._onConnection, this);
    context.store.changed.connect(this._onChange, this);
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const reference = model.data[MIME.job] as { id?: unknown } | undefined;
    const id = typeof reference?.id === 'string' ? reference.id : '';
    this._model = model;
    if (this._card && this._card.jobId === id) {
      return; // The kernel has renewed the snapshot; the card knows better.
    }
    this._id = id;
    await this._show();
  }

  dispose(): void {
    if (!this.isDisposed) {
      this.context.store.connectionChanged.disconnect(this._onConnection, this);
      this.context.store.changed.disconnect(this._onChange, this);
      this._clear();
      super.dispose();
    }
  }

  private async _show(): Promise<void> {
    const { store, trans } = this.context;
    const id = this._id;
    try {
      if (!id) {
        throw new Error(trans.__('This output names no job; this is the saved snapshot.'));
      }
      const [{ JobCard: Card }] = await Promise.all([import('./card'), store.want(id)]);
      if (!this.isDisposed && id === this._id && !this._card) {
        this._clear();
        this._card = new Card(this.context, id);
        this.addWidget(this._card);
      }
    } catch (error) {
      await this._fallBack(
        isGone(error)
          ? trans.__('The record of this job is gone; this is the saved snapshot.')
          : isMissing(error)
            ? trans.__('This Jupyter server has no job server (paijupyter is not enabled); this is the saved snapshot.')
            : id
              ? trans.__('The job server cannot be reached now; this is the saved snapshot.')
              : (error as Error).message
      );
    }
  }

  /** Show the snapshot, and say in one line that it is one. */
  private async _fallBack(why: string): Promise<void> {
    const model = this._model;
    if (this.isDisposed || !model) {
      return;
    }
    this._clear();
    const type = ['text/html', 'text/plain'].find(each => each in model.data);
    this.addWidget(new Widget({ node: h('div', { class: 'jp-PaiOutput-why', role: 'note' }, why) }));
    if (type) {
      const snapshot = this.rendermime.createRenderer(type);
      this._snapshot = snapshot;
      await snapshot.renderModel(model);
      if (this._snapshot === snapshot && !this.isDisposed) {
        this.addWidget(snapshot);
      }
    }
  }

  private _onConnection(): void {
    if (this._snapshot && this.context.store.connection === 'live') {
      void this._show();
    }
  }

  private _onChange(_: unknown, change: { id: string; job: unknown }): void {
    if (change.id === this._id && change.job === null && this._card) {
      void this._fallBack(this.context.trans.__('The record of this job is gone; this is the saved snapshot.'));
    }
  }

  private _clear(): void {
    this._card = null;
    this._snapshot = null;
    [...this.widgets].forEach(widget => widget.dispose());
  }

  private _id = '';
  private _model: IRenderMime.IMimeModel | null = null;
  private _card: JobCard | null = null;
  private _snapshot: IRenderMime.IRenderer | null = null;
}

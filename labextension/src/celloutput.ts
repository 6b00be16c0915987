/** What stands in the output of a cell until that which draws it is loaded. */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Panel, Widget } from '@lumino/widgets';

export type Drawn = Widget & IRenderMime.IRenderer;

export class CellOutput extends Panel implements IRenderMime.IRenderer {
  /** @param load - makes what draws the output. */
  constructor(private readonly load: () => Promise<Drawn>) {
    super();
    this.addClass('jp-PaiOutput');
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this._drawn ??= this.load().then(
      drawn => {
        if (this.isDisposed) {
          drawn.dispose();
        } else {
          this.addWidget(drawn);
        }
        return drawn;
      },
      error => {
        this._drawn = null; // The next try may find the server there.
        throw error;
      }
    );
    const drawn = await this._drawn;
    if (!this.isDisposed) {
      await drawn.renderModel(model);
    }
  }

  private _drawn: Promise<Drawn> | null = null;
}

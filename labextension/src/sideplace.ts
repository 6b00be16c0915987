/** The place of the list in the side bar; the list itself is loaded when it is first shown. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { LabIcon } from '@jupyterlab/ui-components';
import { Panel, Widget } from '@lumino/widgets';

export class SidePlace extends Panel {
  constructor(
    trans: TranslationBundle,
    icon: LabIcon,
    private readonly load: () => Promise<Widget>
  ) {
    super();
    this.id = 'paijupyter-jobs';
    this.title.icon = icon;
    this.title.caption = trans.__('Jobs');
    this.addClass('jp-PaiSide');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Jobs'));
  }

  protected onAfterShow(): void {
    void this._list();
  }

  protected onAfterAttach(): void {
    if (this.isVisible) {
      void this._list();
    }
  }

  protected onActivateRequest(): void {
    void this._list().then(list => list.activate());
  }

  private async _list(): Promise<Widget> {
    const list = await this.load();
    if (list.parent !== this) {
      this.addWidget(list);
    }
    return list;
  }
}

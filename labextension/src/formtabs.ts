/** Two views of one document, and the tabs that choose between them by mouse and arrow keys. */

import { h } from './dom';
import { freshId } from './formfields';

export class Tabs {
  readonly node = h('div', { class: 'jp-PaiForm-tabs', role: 'tablist' });

  /**
   * @param labels - name and words of each; none: there is one view only.
   * @param panel - what holds the views.
   * @param chosen - told of the name of a tab that was chosen.
   */
  constructor(
    labels: [string, string][],
    private readonly panel: HTMLElement,
    private readonly chosen: (name: string) => void
  ) {
    const id = freshId();
    this._tabs = labels.map(([name, label]) => {
      const made = h('button', { type: 'button', role: 'tab', id: `${id}-${name}`, 'data-tab': name }, label);
      made.addEventListener('click', () => this.show(name));
      made.addEventListener('keydown', event => {
        if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
          const other = this._tabs.find(each => each !== made);
          other?.click();
          other?.focus();
        }
      });
      return made;
    });
    this.node.append(...this._tabs);
    panel.setAttribute('role', 'tabpanel');
  }

  show(name: string): void {
    for (const each of this._tabs) {
      const isChosen = each.dataset.tab === name;
      each.setAttribute('aria-selected', String(isChosen));
      each.tabIndex = isChosen ? 0 : -1;
      if (isChosen) {
        this.panel.setAttribute('aria-labelledby', each.id);
      }
    }
    this.chosen(name);
  }

  /** Go to the tab of the view in sight. */
  focus(): void {
    this._tabs.find(each => each.tabIndex === 0)?.focus();
  }

  private readonly _tabs: HTMLButtonElement[];
}

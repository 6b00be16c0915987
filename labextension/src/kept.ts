/** Pages of ours that come back after a reload. */

import type { ILayoutRestorer } from '@jupyterlab/application';
import { WidgetTracker } from '@jupyterlab/apputils';
import type { Widget } from '@lumino/widgets';

/**
 * The open pages of one kind, and what each would be opened with again.
 *
 * JupyterLab asks for them at its start, so this is there before the pages themselves are loaded.
 */
export class KeptPages<P extends Widget = Widget, A extends object = object> {
  /** @param command - opens a page again: its arguments are those given here, and the name that it had as `page`. */
  constructor(restorer: ILayoutRestorer | null, namespace: string, command: string) {
    this._tracker = new WidgetTracker<P>({ namespace });
    void restorer?.restore(this._tracker, {
      command,
      args: page => ({ ...this._given.get(page), page: page.id }),
      name: page => page.id
    });
  }

  add(page: P, given: A): void {
    this._given.set(page, given);
    void this._tracker.add(page);
  }

  /** Take note that a page has come to show something else. */
  keep(page: P, given: A): void {
    this._given.set(page, given);
    void this._tracker.save(page);
  }

  find(match: (given: A) => boolean): P | undefined {
    return this._tracker.find(page => match(this._given.get(page) as A));
  }

  private readonly _tracker: WidgetTracker<P>;
  private readonly _given = new WeakMap<P, A>();
}

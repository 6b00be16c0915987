/** Reads on in the list of all jobs: a page when it is scrolled to its end, all pages while a filter looks for one. */

import { errorText } from './context';
import type { JobStore } from './store';

export class EarlierJobs {
  constructor(
    private readonly store: JobStore,
    private readonly said: (problem: string) => void
  ) {}

  /** Whether jobs are looked for that were not read yet. */
  get looking(): boolean {
    return this._looking;
  }

  /** Read one more page. */
  async page(): Promise<void> {
    if (!this._reading) {
      this._reading = true;
      await this._more();
      this._reading = false;
    }
  }

  /** Read page after page as long as somebody wants it. */
  async all(isWanted: () => boolean): Promise<void> {
    if (!this._looking) {
      this._looking = true;
      while (isWanted() && this.store.hasMore && (await this._more())) {
        // Each page is shown as it comes.
      }
      this._looking = false;
    }
  }

  private async _more(): Promise<boolean> {
    try {
      await this.store.more();
      return true;
    } catch (error) {
      this.said(errorText(error));
      return false;
    }
  }

  private _reading = false;
  private _looking = false;
}

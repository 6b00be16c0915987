/** Which rows of a list are chosen: one by going to it, several with Shift, Ctrl and Space. */

export class Selection {
  private readonly _chosen = new Set<string>();
  private _anchor: string | null = null;

  /** Ids of the chosen rows; none while only one row is looked at. */
  get chosen(): string[] {
    return [...this._chosen];
  }

  has(id: string): boolean {
    return this._chosen.has(id);
  }

  /** Look at one row: nothing is chosen any more, and a range would begin here. */
  only(id: string): void {
    this._chosen.clear();
    this._anchor = id;
  }

  /** Choose a row, or cease to; the one looked at before is chosen with the first. */
  toggle(id: string): void {
    if (!this._chosen.delete(id)) {
      if (this._chosen.size === 0 && this._anchor !== null) {
        this._chosen.add(this._anchor);
      }
      this._chosen.add(id);
    }
    this._anchor = id;
  }

  /** Choose all rows from where a range began to this one, in the order in which they are shown. */
  range(id: string, rows: readonly string[]): void {
    const from = rows.indexOf(this._anchor ?? id);
    const to = rows.indexOf(id);
    if (from < 0 || to < 0) {
      this.only(id);
      return;
    }
    this._chosen.clear();
    rows.slice(Math.min(from, to), Math.max(from, to) + 1).forEach(each => this._chosen.add(each));
  }

  all(rows: readonly string[]): void {
    rows.forEach(each => this._chosen.add(each));
  }

  clear(): void {
    this._chosen.clear();
  }

  /** Forget what is no longer shown. */
  keep(rows: ReadonlySet<string>): void {
    this.chosen.filter(id => !rows.has(id)).forEach(id => this._chosen.delete(id));
  }
}

/** Asks for the plan after every change: not for each of many, and never shows an answer to an older question. */

import { IProblem } from './model';

const PAUSE_MILLISECONDS = 250;

export class Planner<Q, A> {
  /**
   * @param question - what is asked, once all that is under way is done; null: nothing can be.
   * @param ask - asks the server.
   * @param take - gets the answer to the latest question, or why there is none.
   */
  constructor(
    private readonly question: () => Promise<Q | null>,
    private readonly ask: (question: Q) => Promise<A>,
    private readonly take: (answer: A | null, error: unknown) => void,
    private readonly pause = PAUSE_MILLISECONDS
  ) {}

  /** Whether what is shown is not yet about what the form says now. */
  get stale(): boolean {
    return this._timer !== 0 || this._asked !== this._answered;
  }

  /** Something has changed. */
  later(pause = this.pause): void {
    this._asked += 1;
    clearTimeout(this._timer);
    this._timer = setTimeout(() => void this._go(), pause) as unknown as number;
  }

  dispose(): void {
    this._disposed = true;
    clearTimeout(this._timer);
  }

  private async _go(): Promise<void> {
    this._timer = 0;
    const number = this._asked;
    let answer: A | null = null;
    let failed: unknown = null;
    try {
      const question = await this.question();
      answer = question === null ? null : await this.ask(question);
    } catch (error) {
      failed = error;
    }
    if (number === this._asked && !this._disposed) {
      this._answered = number;
      this.take(answer, failed);
    }
  }

  private _timer = 0;
  private _asked = 0;
  private _answered = 0;
  private _disposed = false;
}

/** Errors, then warnings, then hints. */
export function worstFirst(problems: IProblem[]): IProblem[] {
  const rank = { error: 0, warning: 1, hint: 2 };
  return [...problems].sort((one, other) => rank[one.severity] - rank[other.severity]);
}

/** Those that have a line of the document. */
export function withLines(problems: IProblem[]): IProblem[] {
  return problems.filter(each => each.line && !each.file);
}

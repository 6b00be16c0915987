/**
 * The last lines of a running job, for its card.
 *
 * A browser has six connections to a server, so a card asks now and then instead of holding one.
 */

import { strip } from './ansi';
import { Api } from './api';
import { fold } from './fold';

const LINES = 3;
const PAUSE_MILLISECONDS = 2000;
const LONGEST = 400;

export interface IRecentLine {
  task: string;
  text: string;
}

export class RecentLines {
  lines: IRecentLine[] = [];

  constructor(
    private readonly api: Api,
    private readonly jobId: string,
    private readonly changed: () => void
  ) {}

  /** Begin to ask, or cease to. */
  follow(on: boolean): void {
    if (on === (this._abort !== null)) {
      return;
    }
    this._abort?.abort();
    this._abort = on ? new AbortController() : null;
    if (this._abort) {
      void this._ask(this._abort.signal);
    }
  }

  private async _ask(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const lines: IRecentLine[] = [];
      try {
        await this.api.mergedLog(this.jobId, { tail: LINES }, signal, ({ task, text }) => {
          for (const line of text.split('\n').filter(Boolean)) {
            lines.push({ task, text: strip(fold(line.replace(/\r$/, ''))).slice(0, LONGEST) });
          }
          lines.splice(0, lines.length - LINES);
        });
        this.lines = lines;
        this.changed();
      } catch {
        // Whether the server can be reached is the store's business to say; here the next try will do.
      }
      await new Promise(resolve => setTimeout(resolve, PAUSE_MILLISECONDS));
    }
  }

  private _abort: AbortController | null = null;
}

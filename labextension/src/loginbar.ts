/** One line that says that nobody is logged in at a profile's server, and lets one do so. */

import { errorText, IContext } from './context';
import { Button, h, rich } from './dom';
import { IJob } from './model';

export class LoginBar {
  readonly node = h('div', { class: 'jp-PaiLoginBar', role: 'status', hidden: true });

  constructor(
    private readonly context: IContext,
    /** Called when somebody has logged in. */
    private readonly done: () => void
  ) {}

  /** Ask when a job's server can no longer be reached, and again when it can. */
  async mind(job: IJob): Promise<void> {
    const stale = job.staleSince ?? null;
    if (stale !== this._stale) {
      this._stale = stale;
      await this.ask(job.profile);
    }
  }

  /** Show the line if the profile's server wants a login and nobody is logged in. */
  async ask(profile: string): Promise<void> {
    this._profile = profile;
    const { accountOf, logIn } = await import('./login');
    const { context } = this;
    const { trans } = context;
    const account = await accountOf(context, profile).catch(() => null);
    if (profile !== this._profile) {
      return;
    }
    this.node.hidden = account === null || account.user !== '';
    if (account === null || this.node.hidden) {
      this.node.replaceChildren();
      return;
    }
    const said = account.expired
      ? trans.__('The login at `%1` has expired.', profile)
      : trans.__('Nobody is logged in at `%1`.', profile);
    const log = new Button(trans.__('Log in'), trans.__('Give a password or a token to the job server'), () => {
      logIn(context, profile, account)
        .then(isIn => (isIn ? this._in() : undefined))
        .catch(error => this.node.replaceChildren(...rich(errorText(error))));
    });
    this.node.replaceChildren(...rich(said), ' ', log.node);
  }

  private _in(): void {
    this.node.hidden = true;
    this.node.replaceChildren();
    this.done();
  }

  private _profile = '';
  private _stale: string | null = null;
}

/** Logging in from the palette and the side bar: at which server, and who is logged in there. */

import { InputDialog, showErrorMessage } from '@jupyterlab/apputils';

import { errorText, IContext } from './context';
import { h } from './dom';
import { accountOf, IAccount, logIn } from './login';
import { LoginBar } from './loginbar';

/** Kinds whose credentials are not ours to keep: nobody logs in there. */
const WITHOUT_LOGINS = ['local', 'kubernetes'];

interface IEntry {
  profile: string;
  account: IAccount;
}

/** Names of the profiles at whose server one may have to log in. */
async function remote(context: IContext): Promise<string[]> {
  const { profiles } = await context.api.ask<{ profiles: { name: string; kind: string }[] }>('profiles');
  return profiles.filter(({ kind }) => !WITHOUT_LOGINS.includes(kind)).map(({ name }) => name);
}

/** Ask for a profile where there are several, then for a login; errors are said in a dialog. */
export async function chooseAndLogIn(context: IContext, profile: string | null): Promise<void> {
  const { trans } = context;
  const title = trans.__('Log in');
  try {
    const names = profile === null ? await remote(context) : [profile];
    const asked = await Promise.all(
      names.map(async name => ({ profile: name, account: await accountOf(context, name).catch(() => null) }))
    );
    const found = asked.filter((each): each is IEntry => each.account !== null);
    if (!found.length) {
      throw new Error(trans.__('No profile has a server to log in at.'));
    }
    const chosen = found.length > 1 ? await choose(context, found) : found[0];
    if (chosen && (await logIn(context, chosen.profile, chosen.account))) {
      context.store.retry();
    }
  } catch (error) {
    await showErrorMessage(title, errorText(error));
  }
}

async function choose(context: IContext, found: IEntry[]): Promise<IEntry | null> {
  const { trans } = context;
  const label = ({ profile, account }: IEntry): string =>
    [profile, account.user ? trans.__('%1 is logged in', account.user) : trans.__('nobody is logged in')].join(' · ');
  const labels = found.map(label);
  const answer = await InputDialog.getItem({ title: trans.__('Log in at which profile'), items: labels });
  return answer.button.accept ? (found[labels.indexOf(answer.value ?? '')] ?? null) : null;
}

/** One line for each profile at whose server nobody is logged in; nothing where all is well. */
export class LoginLines {
  readonly node = h('div', { class: 'jp-PaiJobs-logins' });

  constructor(private readonly context: IContext) {}

  async read(): Promise<void> {
    const names = await remote(this.context).catch(() => []);
    const bars = names.map(name => {
      const bar = new LoginBar(this.context, () => this.context.store.retry());
      void bar.ask(name);
      return bar.node;
    });
    this.node.replaceChildren(...bars);
  }
}

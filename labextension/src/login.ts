/**
 * Logging in at a profile's server. What is typed goes from its input into one request to the job server, and stays
 * nowhere: not in settings, workspace, notebook or storage of the browser.
 */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { errorText, IContext } from './context';
import { h, rich } from './dom';
import { ApiError } from './model';

/** Who is logged in at a profile's server, and how one logs in there. */
export interface IAccount {
  user: string;
  expired?: boolean;
  /** Why nothing can be kept in a keyring; empty: it can. */
  noKeyring?: string;
  authn?: string;
  page?: string;
}

interface IGiven {
  user: string;
  password: string;
  token: string;
  inFile: boolean;
}

const address = (profile: string): string => `profiles/${encodeURIComponent(profile)}/login`;

/** Ask who is logged in; null where a profile has no logins. */
export async function accountOf(context: IContext, profile: string): Promise<IAccount | null> {
  try {
    return await context.api.ask<IAccount>(address(profile));
  } catch (error) {
    if (error instanceof ApiError && error.code === 'no-login') {
      return null;
    }
    throw error;
  }
}

/** Show the form until somebody is logged in or gives up; say whether somebody is. */
export async function logIn(context: IContext, profile: string, account: IAccount): Promise<boolean> {
  const { trans } = context;
  let said = '';
  let user = account.user;
  for (;;) {
    const body = new LoginForm(account, user, said, trans);
    const answer = await showDialog<IGiven>({
      title: trans.__('Log in at %1', profile),
      body,
      buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.okButton({ label: trans.__('Log in') })],
      focusNodeSelector: 'input'
    });
    const given = answer.value;
    if (!answer.button.accept || !given) {
      return false;
    }
    user = given.user;
    try {
      await send(context, profile, given);
      return true;
    } catch (error) {
      said = errorText(error);
    }
  }
}

async function send(context: IContext, profile: string, given: IGiven): Promise<void> {
  const { user, password, token, inFile } = given;
  const what = token ? { token } : { user, password };
  await context.api.ask(address(profile), 'POST', { ...what, store: inFile ? 'file' : 'keyring' });
}

class LoginForm extends Widget implements Dialog.IBodyWidget<IGiven> {
  constructor(account: IAccount, user: string, said: string, trans: TranslationBundle) {
    super();
    this.addClass('jp-PaiLogin');
    const takesPassword = (account.authn || 'basic').toLowerCase() === 'basic';
    const field = (label: string, input: HTMLInputElement): void => {
      input.id = `jp-pai-login-${input.name}`;
      this.node.append(h('label', { for: input.id }, label), input);
    };
    if (said) {
      this.node.append(h('div', { class: 'jp-PaiLogin-said', role: 'alert' }, ...rich(said)));
    }
    if (takesPassword) {
      this._user.value = user;
      field(trans.__('User'), this._user);
      field(trans.__('Password'), this._password);
    }
    field(takesPassword ? trans.__('Or a token') : trans.__('Token'), this._token);
    if (account.page?.startsWith('http')) {
      const { page } = account;
      const link = h('a', { href: page, target: '_blank', rel: 'noopener', class: 'jp-Pai-link' }, page);
      this.node.append(h('div', {}, trans.__('Tokens are made at') + ' ', link));
    }
    if (account.noKeyring) {
      const label = trans.__('Keep the token in a file that only you can read');
      this.node.append(h('div', {}, account.noKeyring), h('label', {}, this._inFile, label));
    }
  }

  getValue(): IGiven {
    const given = {
      user: this._user.value.trim(),
      password: this._password.value,
      token: this._token.value.trim(),
      inFile: this._inFile.checked
    };
    this._password.value = '';
    this._token.value = '';
    return given;
  }

  private readonly _user = input('text', 'user', 'username');
  private readonly _password = input('password', 'password', 'off');
  private readonly _token = input('password', 'token', 'off');
  private readonly _inFile = h('input', { type: 'checkbox' });
}

function input(type: string, name: string, autocomplete: string): HTMLInputElement {
  return h('input', { type, name, autocomplete, spellcheck: 'false', class: 'jp-mod-styled' });
}

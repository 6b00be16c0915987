/** The question before a submission, with the secrets that are asked for: their values go into the request only. */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { h } from './dom';
import { IPlan, ISubmission } from './formapi';
import { freshId } from './formfields';
import { tasksText } from './planview';

type Secrets = ISubmission['secrets'];

/** Ask; null: not to be submitted. */
export async function confirm(
  plan: IPlan,
  references: Record<string, string>,
  trans: TranslationBundle
): Promise<Secrets | null> {
  const body = new Question(plan, references, trans);
  const answer = await showDialog<Secrets>({
    title: trans.__('Submit %1?', plan.name.replace(/-[a-z0-9]{6}$/, '')),
    body,
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.okButton({ label: trans.__('Submit %1', tasksText(plan, trans)) })
    ],
    focusNodeSelector: 'input'
  });
  return answer.button.accept ? answer.value : null;
}

class Question extends Widget implements Dialog.IBodyWidget<Secrets> {
  constructor(
    plan: IPlan,
    private readonly references: Record<string, string>,
    trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-PaiForm-question');
    const where = trans.__(
      '%1 on %2, which starts: %3',
      tasksText(plan, trans),
      plan.profile ?? '',
      plan.starts || '?'
    );
    this.node.append(h('p', {}, where));
    for (const [name, reference] of Object.entries(references)) {
      if (reference === 'ask' || reference.startsWith('env:')) {
        const id = freshId();
        const input = h('input', { type: 'password', id, autocomplete: 'new-password', class: 'jp-mod-styled' });
        this._asked.set(name, input);
        this.node.append(h('label', { for: id }, trans.__('Value of %1', name)), input);
      }
    }
  }

  getValue(): Secrets {
    const secrets: Secrets = {};
    for (const [name, reference] of Object.entries(this.references)) {
      const input = this._asked.get(name);
      secrets[name] = input ? { value: input.value, reference: 'ask' } : { reference };
      if (input) {
        input.value = '';
      }
    }
    return secrets;
  }

  private readonly _asked = new Map<string, HTMLInputElement>();
}

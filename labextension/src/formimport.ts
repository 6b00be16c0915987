/** A document from outside: chosen or pasted; values of secrets in it are taken out before it is used. */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { h, rich } from './dom';
import { IOperation, Values } from './formapi';
import { escaped, FormDocument } from './formdocument';
import { freshId } from './formfields';

const REFERENCE = /^\s*<%.*%>\s*$/s;

class ImportBody extends Widget implements Dialog.IBodyWidget<string> {
  constructor(trans: TranslationBundle) {
    super();
    this.addClass('jp-PaiForm-import');
    const ids = [freshId(), freshId()];
    const file = h('input', { type: 'file', id: ids[0], accept: '.yaml,.yml,.json' });
    file.addEventListener('change', () => {
      void file.files?.[0]?.text().then(text => (this._text.value = text));
    });
    this._text.id = ids[1];
    this.node.append(
      h('label', { for: ids[0] }, trans.__('Choose a file')),
      file,
      h('label', { for: ids[1] }, trans.__('or paste a job document')),
      this._text
    );
  }

  getValue(): string {
    return this._text.value;
  }

  private readonly _text = h('textarea', { rows: 12, cols: 60, spellcheck: 'false' });
}

/** Has a person choose a document, and says what was changed in it until that is taken away. */
export class Importer {
  readonly node = h('div', { class: 'jp-PaiForm-notice', role: 'status' });

  constructor(private readonly trans: TranslationBundle) {}

  /** @param unreadable - called where a text is none that values can be read from. */
  async run(document: FormDocument, unreadable: () => void): Promise<void> {
    const text = await askText(this.trans);
    if (text === null) {
      return;
    }
    this.node.replaceChildren();
    await document.setText(text);
    if (document.broken) {
      unreadable();
      return;
    }
    const changes = document.problems.filter(each => each.code === 'old-protocol');
    const { names, patch } = withheld(document.values);
    if (patch.length) {
      await document.apply(...patch);
    }
    this._tell([
      ...changes.map(each => [each.message, each.hint].filter(Boolean).join(' ')),
      ...names.map(name => this.trans.__('The value of `%1` was taken out; give it as a secret.', name))
    ]);
  }

  private _tell(said: string[]): void {
    if (!said.length) {
      return;
    }
    const close = h('button', { type: 'button', class: 'jp-Pai-link' }, this.trans.__('Close the list'));
    close.addEventListener('click', () => this.node.replaceChildren());
    const list = h('ul', {}, ...said.map(each => h('li', {}, ...rich(each))));
    this.node.replaceChildren(h('strong', {}, this.trans.__('What was changed')), list, close);
  }
}

/** Ask for a document; null: none. */
async function askText(trans: TranslationBundle): Promise<string | null> {
  const answer = await showDialog<string>({
    title: trans.__('Import a job document'),
    body: new ImportBody(trans),
    buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.okButton({ label: trans.__('Import') })],
    focusNodeSelector: 'input'
  });
  return answer.button.accept && answer.value?.trim() ? answer.value : null;
}

/** What takes the values of secrets out of a document, and the names of those that had one. */
export function withheld(values: Values): { names: string[]; patch: IOperation[] } {
  const secrets = mapping(values.secrets);
  const names = Object.keys(secrets).filter(name => secrets[name] !== '' && secrets[name] !== null);
  const patch: IOperation[] = names.map(name => ({ op: 'replace', path: `/secrets/${escaped(name)}`, value: '' }));
  const images = Array.isArray(values.prerequisites) ? values.prerequisites : [];
  images.forEach((each, at) => {
    const password: unknown = mapping(mapping(each).auth).password;
    if (password === undefined || password === null || password === '' || REFERENCE.test(String(password))) {
      return;
    }
    let name = 'REGISTRY_PASSWORD';
    for (let number = 2; name in secrets || names.includes(name); number += 1) {
      name = `REGISTRY_PASSWORD_${number}`;
    }
    names.push(name);
    patch.push(
      { op: 'replace', path: `/prerequisites/${at}/auth/password`, value: `<% $secrets.${name} %>` },
      { op: 'replace', path: `/secrets/${name}`, value: '' }
    );
  });
  return { names, patch };
}

function mapping(value: unknown): Values {
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Values) : {};
}

/** What the bar above a form does beside the document: another job, the defaults of a profile. */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { IContext } from './context';
import { h } from './dom';
import { FormApi } from './formapi';
import { CommandIDs } from './ids';
import { stateWord } from './words';

/** Have a person choose an earlier job; open a form that starts from it. */
export async function pickJob({ commands, store, trans }: IContext): Promise<void> {
  const select = h('select', { class: 'jp-mod-styled', 'aria-label': trans.__('Job') });
  const jobs = store.jobs();
  select.append(...jobs.map(job => h('option', { value: job.id }, `${job.name} · ${stateWord(job.state, trans)}`)));
  const title = trans.__('Start from a job');
  if (!jobs.length) {
    const buttons = [Dialog.cancelButton({ label: trans.__('Close') })];
    await showDialog({ title, body: trans.__('There is no job yet.'), buttons });
    return;
  }
  const answer = await showDialog({
    title,
    body: new Widget({ node: h('div', {}, select) }),
    focusNodeSelector: 'select',
    buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.okButton({ label: trans.__('Open') })]
  });
  if (answer.button.accept && select.value) {
    await commands.execute(CommandIDs.form, { job: select.value });
  }
}

/** Ask, then have a profile give an image to jobs that name none; return what is to be said. */
export async function saveDefaults(
  profile: string | null,
  image: string | null,
  api: FormApi,
  trans: TranslationBundle
): Promise<string> {
  if (!profile || !image) {
    return trans.__('The document names no image.');
  }
  const answer = await showDialog({
    title: trans.__('Save as profile default'),
    body: trans.__('Jobs of the profile %1 that name no image will run in %2.', profile, image),
    buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.okButton({ label: trans.__('Save') })]
  });
  if (!answer.button.accept) {
    return '';
  }
  await api.editProfile(profile, { image });
  return trans.__('The profile %1 is saved.', profile);
}

/** The table of fields comes from the server in English; a catalogue of the front end has its texts as well. */

import type { TranslationBundle } from '@jupyterlab/translation';

import { IRow } from './formapi';

/** Say the rows of the table in the language of the user. */
export function inWords(rows: IRow[], trans: TranslationBundle): IRow[] {
  const said = (text: string): string => text && trans.__(text);
  return rows.map(row => ({ ...row, label: said(row.label), help: said(row.help), unit: said(row.unit) }));
}

/** What every part of the front end shares. */

import { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

import { Api } from './api';
import { ApiError } from './model';
import { JobStore } from './store';

export interface ISettings {
  notifications: boolean;
  wrapLines: boolean;
  tailLines: number;
}

export interface IContext {
  api: Api;
  store: JobStore;
  trans: TranslationBundle;
  commands: CommandRegistry;
  settings: ISettings;
  /** Ids of the jobs whose card can be seen now. */
  inView: Set<string>;
}

/** Say an error: what is wrong, and what to do. */
export function errorText(error: unknown): string {
  if (error instanceof ApiError) {
    return [error.message, error.hint].filter(Boolean).join(' ');
  }
  return error instanceof Error ? error.message : String(error);
}

/** Have the browser save something under a name. */
export function save(url: string, name: string): void {
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
}

/** Have the browser save a content under a name. */
export function saveBlob(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  save(url, name);
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

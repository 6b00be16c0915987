/** Texts of a card that need more than a word. */

import type { TranslationBundle } from '@jupyterlab/translation';

import { ICellPlace, IJob, IOutput, IUsage } from './model';
import { placeIn } from './places';
import { size } from './words';

const MOST_OUTPUTS = 4;

/** What a job uses now: `2.1 CPU · 1.2 GiB · GPU 45 %, 3.0 GiB`. */
export function usageText(usage: IUsage | null | undefined, trans: TranslationBundle): string {
  if (!usage) {
    return '';
  }
  const { cpu, memoryMB, gpu } = usage;
  const said = [trans.__('%1 CPU', cpu.toFixed(1)), memory(memoryMB)];
  if (gpu) {
    const busy = gpu.busy === null ? '' : ` ${Math.round(gpu.busy * 100)} %`;
    const held = gpu.memoryMB === null ? '' : `, ${memory(gpu.memoryMB)}`;
    said.push(`${gpu.count > 1 ? `${gpu.count} × ` : ''}GPU${busy}${held}`);
  }
  return said.join(' · ');
}

/** Say memory of the given MiB. */
function memory(megabytes: number): string {
  return megabytes >= 1024 ? `${(megabytes / 1024).toFixed(1)} GiB` : `${Math.round(megabytes)} MiB`;
}

/** The line of code that a traceback shows below its place; empty where it shows none. */
export function codeAt(job: IJob, place: ICellPlace): string {
  const lines = job.failedTask?.lastLines ?? [];
  for (let at = lines.length - 2; at >= 0; at -= 1) {
    const found = placeIn(lines[at], job)?.place;
    if (found && found.line === place.line && found.cell === place.cell && found.run === place.run) {
      return lines[at + 1].trim();
    }
  }
  return '';
}

/** Leave out where a task's folder lies on the server: it says nothing. */
export function shown(line: string): string {
  return line.replace(/"[^"]*\/tasks\/[^"/]+\/\d+\/work\//g, '"');
}

export function localTime(time: string): string {
  return new Date(time).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });
}

export function outputsText(outputs: IOutput[], trans: TranslationBundle): string {
  const some = outputs.slice(0, MOST_OUTPUTS).map(output => `${output.path} (${size(output.size)})`);
  const rest = outputs.slice(MOST_OUTPUTS);
  if (rest.length) {
    const total = rest.reduce((sum, output) => sum + output.size, 0);
    some.push(trans.__('%1 more (%2)', rest.length, size(total)));
  }
  return some.join(', ');
}

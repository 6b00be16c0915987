/** Amounts as people write them, as `protocol/quantities.py` reads them: memory in MB (mebibytes), time in seconds. */

const MEBIBYTE = 1024 ** 2;
const POWERS = 'kmgtpe';
const SECONDS: Record<string, number> = { w: 604800, d: 86400, h: 3600, m: 60, s: 1 };

/** Read `8Gi`, `500M` or `8192` (MB); null: it is no amount of memory. */
export function parseMemory(text: string): number | null {
  const match = /^(\d+(?:\.\d*)?|\.\d+)\s*(?:([kmgtpe])(i)?b?)?$/i.exec(text.trim());
  if (!match) {
    return null;
  }
  const power = match[2] ? POWERS.indexOf(match[2].toLowerCase()) + 1 : 0;
  const amount = power ? (Number(match[1]) * (match[3] ? 1024 : 1000) ** power) / MEBIBYTE : Number(match[1]);
  const megabytes = Math.ceil(Number(amount.toFixed(6)));
  return megabytes >= 1 && megabytes <= 2 ** 40 ? megabytes : null;
}

/** Write MB as a person would type them. */
export function memoryText(megabytes: number): string {
  return megabytes % 1024 === 0 ? `${megabytes / 1024}Gi` : `${megabytes}Mi`;
}

/** Write MB as screens show it: `512 MiB`, `8 GiB`. */
export function memoryWords(megabytes: number): string {
  const isLarge = megabytes >= 1024;
  return `${(isLarge ? megabytes / 1024 : megabytes).toFixed(1).replace(/\.0$/, '')} ${isLarge ? 'GiB' : 'MiB'}`;
}

/** Read `2h30m`, `45s` or `90` (seconds); null: it is no time. */
export function parseDuration(text: string): number | null {
  const cleaned = text.trim();
  if (/^\d+(\.\d+)?$/.test(cleaned)) {
    return Math.ceil(Number(cleaned)) || null;
  }
  if (
    !/^(?:\d+(?:\.\d+)?\s*(?:w|d|h|m|s|weeks?|days?|hours?|hrs?|hr|minutes?|mins?|seconds?|secs?)\s*)+$/i.test(cleaned)
  ) {
    return null;
  }
  const pieces = cleaned.matchAll(/(\d+(?:\.\d+)?)\s*(w|d|h|m|s)[a-z]*\s*/gi);
  const seconds = [...pieces].reduce((sum, [, number, unit]) => sum + Number(number) * SECONDS[unit.toLowerCase()], 0);
  return Math.ceil(seconds) || null;
}

/** Write seconds as a person would type them. */
export function durationText(seconds: number): string {
  let rest = seconds;
  let text = '';
  for (const unit of ['d', 'h', 'm', 's']) {
    const count = Math.floor(rest / SECONDS[unit]);
    rest -= count * SECONDS[unit];
    text += count ? `${count}${unit}` : '';
  }
  return text || '0s';
}

/** Read a parameter as a person types it: numbers, true, false and null are such; in quotes it is text. */
export function parseScalar(text: string): unknown {
  const cleaned = text.trim();
  if (/^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|".*"|\[.*\]|\{.*\})$/s.test(cleaned)) {
    try {
      return JSON.parse(cleaned) as unknown;
    } catch {
      return text;
    }
  }
  return text;
}

/** Write a parameter so that it is read as the same. */
export function scalarText(value: unknown): string {
  if (typeof value === 'string') {
    return parseScalar(value) === value ? value : JSON.stringify(value);
  }
  return value === undefined ? '' : JSON.stringify(value);
}

// Figures for people: rates and amounts are decimal (1 Mbit/s is 1,000,000 bit/s), three digits that
// count, the unit always there. The rules are those of docs/manual/units.md.

export interface Quantity {
  figure: string;
  unit: string;
}

const NONE: Quantity = { figure: '–', unit: '' };

/** Three digits that count, never an exponent: 941, 94.1, 9.41, 0.94. */
export function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 99.95) return value.toFixed(0);
  if (size >= 9.995) return value.toFixed(1);
  return value.toFixed(2);
}

function scaled(value: number, step: number, units: readonly string[]): Quantity {
  let left = value;
  let index = 0;
  // 999.6 would be written as 1000: the next unit has it as 1.00.
  while (Math.abs(left) >= 999.5 && index < units.length - 1) {
    left /= step;
    index += 1;
  }
  const unit = units[index] as string;
  return { figure: index === 0 ? left.toFixed(0) : digits(left), unit };
}

const known = (value: number | null | undefined): value is number =>
  typeof value === 'number' && Number.isFinite(value);

export const rate = (bps: number | null | undefined): Quantity =>
  known(bps) ? scaled(bps, 1000, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s']) : NONE;

export const bytes = (count: number | null | undefined): Quantity =>
  known(count) ? scaled(count, 1000, ['bytes', 'kB', 'MB', 'GB', 'TB']) : NONE;

/** A window or buffer: powers of 1024, as kernels count them. */
export function size(count: number | null | undefined): Quantity {
  if (!known(count)) return NONE;
  for (const [unit, step] of [
    ['GiB', 2 ** 30],
    ['MiB', 2 ** 20],
    ['KiB', 2 ** 10],
  ] as const) {
    if (count >= step && count < 1024 * step && (count * 100) % step === 0) {
      return { figure: String(count / step), unit };
    }
  }
  return bytes(count);
}

/** A time that was measured in milliseconds: 420 µs, 12.3 ms, 1.20 s. */
export function delay(ms: number | null | undefined): Quantity {
  if (!known(ms)) return NONE;
  if (Math.abs(ms) >= 999.5) return { figure: digits(ms / 1000), unit: 's' };
  if (Math.abs(ms) >= 1) return { figure: digits(ms), unit: 'ms' };
  return { figure: ms.toFixed(2), unit: 'ms' };
}

export const seconds = (value: number | null | undefined): Quantity =>
  known(value) ? { figure: digits(value), unit: 's' } : NONE;

export const percent = (ratio: number | null | undefined): Quantity => {
  if (!known(ratio)) return NONE;
  const share = ratio * 100;
  if (share === 0) return { figure: '0', unit: '%' };
  return { figure: Math.abs(share) < 0.1 ? share.toPrecision(2) : digits(share), unit: '%' };
};

/** A round figure that is no measurement: `100 Mbit/s`, not `100.0`. */
export const round = ({ figure, unit }: Quantity): Quantity => ({
  figure: figure.includes('.') ? figure.replace(/\.?0+$/, '') : figure,
  unit,
});

/** As one word, with the space that does not break. */
export const word = ({ figure, unit }: Quantity): string =>
  unit === '' ? figure : `${figure}\u00a0${unit}`;

/** Date and time in the reader's zone, to the second, the year first so that it sorts. */
export function moment(iso: string): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

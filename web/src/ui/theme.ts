// Light or dark: the system's, until somebody chooses. The value is what is in force, so that
// charts redraw when it changes.
import { effect, signal } from '@preact/signals';

const dark = matchMedia('(prefers-color-scheme: dark)');
const root = document.documentElement;

type Theme = 'light' | 'dark';

const inForce = (): Theme => {
  const chosen = root.dataset.theme;
  return chosen === 'light' || chosen === 'dark' ? chosen : dark.matches ? 'dark' : 'light';
};

export const theme = signal<Theme>(inForce());

dark.addEventListener('change', () => {
  theme.value = inForce();
});

export function toggle(): void {
  const wanted: Theme = theme.value === 'dark' ? 'light' : 'dark';
  root.dataset.theme = wanted;
  try {
    // What the system has needs no memory: it then follows the system again.
    if (wanted === (dark.matches ? 'dark' : 'light')) localStorage.removeItem('theme');
    else localStorage.setItem('theme', wanted);
  } catch {
    // The choice then lasts as long as the page.
  }
  theme.value = wanted;
}

effect(() => {
  root.style.colorScheme = theme.value;
});

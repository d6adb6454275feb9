// Where the page is: the address bar is the only state of navigation.
import { signal } from '@preact/signals';
import { route, type Route } from '../show/route';

const here = (): Route => route(location.pathname, location.search);

export const at = signal<Route>(here());

addEventListener('popstate', () => {
  at.value = here();
});

export function go(href: string, replace = false): void {
  if (replace) history.replaceState(null, '', href);
  else history.pushState(null, '', href);
  at.value = here();
  if (!replace) {
    scrollTo(0, 0);
    document.querySelector<HTMLElement>('main')?.focus({ preventScroll: true });
  }
}

/** Links to views of the page do not load it anew; others, and clicks with keys held, do. */
export function follow(event: MouseEvent): void {
  const link = (event.target as Element | null)?.closest('a');
  if (!link || link.origin !== location.origin || link.target !== '' || link.download !== '') return;
  if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (link.pathname.startsWith('/api/') || /\.[a-z]+$/.test(link.pathname)) return;
  if (link.hash !== '' && link.pathname === location.pathname) return;
  event.preventDefault();
  go(link.pathname + link.search);
}

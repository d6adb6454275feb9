// Addresses of the page's own views.

export type Route =
  | { view: 'test' }
  | { view: 'results'; query: URLSearchParams }
  | { view: 'result'; id: string }
  | { view: 'whole'; run: string }
  | { view: 'compare'; first: string; second: string }
  | { view: 'published'; id: string; table: string }
  | { view: 'studies'; run: string | null }
  | { view: 'run' }
  | { view: 'leg' }
  | { view: 'series'; query: URLSearchParams }
  | { view: 'mesh' }
  | { view: 'server' }
  | { view: 'unknown'; path: string };

/** An id as the store makes them; anything else never reaches a request. */
const ID = /^[0-9A-Za-z-]{1,64}$/;

export function route(path: string, search = ''): Route {
  const query = new URLSearchParams(search);
  const [first = '', second = '', ...rest] = path.split('/').filter((part) => part !== '');
  if (rest.length > 0) return { view: 'unknown', path };
  if (first === '') return { view: 'test' };
  if (first === 'results' && second === '') {
    const pair = (query.get('compare') ?? '').split(',');
    const [one = '', two = ''] = pair;
    const table = query.get('published') ?? '';
    const run = query.get('run') ?? '';
    if (ID.test(run)) return { view: 'whole', run };
    if (pair.length === 1 && ID.test(one) && ID.test(table)) return { view: 'published', id: one, table };
    return pair.length === 2 && ID.test(one) && ID.test(two)
      ? { view: 'compare', first: one, second: two }
      : { view: 'results', query };
  }
  if (first === 'results' && ID.test(second)) return { view: 'result', id: second };
  if (first === 'studies' && (second === '' || ID.test(second))) {
    return { view: 'studies', run: second === '' ? null : second };
  }
  if (first === 'series' && second === '') return { view: 'series', query };
  if (first === 'mesh' && second === '') return { view: 'mesh' };
  if (first === 'run' && second === '') return { view: 'run' };
  if (first === 'leg' && second === '') return { view: 'leg' };
  if (first === 'server' && second === '') return { view: 'server' };
  return { view: 'unknown', path };
}

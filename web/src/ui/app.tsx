// The frame of every view: name, navigation, the switch of colours.
import { useEffect } from 'preact/hooks';
import type { JSX } from 'preact';
import { askServer } from '../api/client';
import type { Server } from '../api/types';
import { lent, run } from '../run/drive';
import { isOver } from '../run/machine';
import type { Route } from '../show/route';
import { at, follow } from './nav';
import { Failed, Loading, useLoaded } from './parts';
import { TestView } from './test';
import { theme, toggle } from './theme';

const NAMES: Record<Route['view'], string> = {
  test: 'Test this path',
  results: 'Results',
  result: 'Result',
  whole: 'A test',
  compare: 'Two results',
  published: 'A published table',
  studies: 'Studies',
  series: 'Series',
  mesh: 'Mesh',
  run: 'Run from here',
  leg: 'Which leg',
  server: 'Server',
  unknown: 'Not found',
};

function Links({ server, view }: { server: Server | null; view: Route['view'] }): JSX.Element {
  const links: [string, string, boolean][] = [
    ['/', 'Test', view === 'test'],
    ['/results', 'Results', ['results', 'result', 'whole', 'compare', 'published'].includes(view)],
    ['/studies', 'Studies', view === 'studies'],
    ['/series', 'Series', view === 'series'],
    ['/server', 'Server', view === 'server'],
  ];
  if (server !== null) links.splice(4, 0, ['/run', 'Run from here', view === 'run']);
  if (server?.outer) links.splice(1, 0, ['/leg', 'Which leg', view === 'leg']);
  if (server?.features.includes('mesh')) links.splice(4, 0, ['/mesh', 'Mesh', view === 'mesh']);
  return (
    <nav aria-label="Views">
      {links.map(([href, name, current]) => (
        <a key={href} href={href} aria-current={current ? 'page' : undefined}>
          {name}
        </a>
      ))}
    </nav>
  );
}

function View({ where, server }: { where: Route; server: Server }): JSX.Element {
  switch (where.view) {
    case 'test':
      return <TestView server={server} />;
    case 'results':
      return <Later key="results" name="results" fetch={results} props={{ query: where.query }} />;
    case 'result':
      return <Later key={where.id} name="result" fetch={result} props={{ id: where.id }} />;
    case 'whole':
      return <Later key={where.run} name="whole" fetch={whole} props={{ run: where.run }} />;
    case 'compare':
      return <Later key="compare" name="compare" fetch={compare} props={where} />;
    case 'published':
      return <Later key="published" name="published" fetch={published} props={where} />;
    case 'studies':
      return <Later key="studies" name="studies" fetch={studies} props={where} />;
    case 'series':
      return <Later key="series" name="series" fetch={series} props={{ query: where.query }} />;
    case 'mesh':
      return <Later key="mesh" name="mesh" fetch={mesh} props={{}} />;
    case 'run':
      return <Later key="run" name="run" fetch={runHere} props={{ server }} />;
    case 'leg':
      return <Later key="leg" name="leg" fetch={leg} props={{ server }} />;
    case 'server':
      return <Later key="server" name="server" fetch={about} props={{}} />;
    case 'unknown':
      return (
        <>
          <h1>There is no such page</h1>
          <p>
            Nothing is at <code>{where.path}</code>. <a href="/">Test this path</a> or look at the{' '}
            <a href="/results">results</a>.
          </p>
        </>
      );
  }
}

// Scripts that come when their view is first opened, so that the page of the test stays small.
const results = async () => (await import('./results')).ResultsView;
const result = async () => (await import('./result')).ResultView;
const whole = async () => (await import('./result')).WholeView;
const compare = async () => (await import('./compare')).CompareView;
const published = async () => (await import('./published')).PublishedView;
const studies = async () => (await import('./studies')).StudiesView;
const series = async () => (await import('./series')).SeriesView;
const mesh = async () => (await import('./mesh')).MeshView;
const runHere = async () => (await import('./run_here')).RunView;
const leg = async () => (await import('./leg')).LegView;
const about = async () => (await import('./server')).ServerView;

function Later<P extends object>(view: {
  name: string;
  fetch: () => Promise<(props: P) => JSX.Element>;
  props: P;
}): JSX.Element {
  const [found, again] = useLoaded(`view ${view.name}`, view.fetch);
  if (found.is === 'loading') return <Loading />;
  if (found.is === 'failed') return <Failed error={found.error} again={again} />;
  return <found.value {...view.props} />;
}

/** A test goes on while other views are open: a line leads back to it. */
function Elsewhere({ where }: { where: Route }): JSX.Element | null {
  if (lent.value) {
    return where.view === 'leg' ? null : (
      <p class="elsewhere">
        Both legs are being measured: <a href="/leg">back to it</a>. Looking around disturbs it.
      </p>
    );
  }
  const going = run.value !== null && !isOver(run.value.phase) && where.view !== 'test';
  return going ? (
    <p class="elsewhere">
      A test of this path is running: <a href="/">back to it</a>. Looking around disturbs it.
    </p>
  ) : null;
}

export function App(): JSX.Element {
  const where = at.value;
  const [server, again] = useLoaded('server', askServer);
  useEffect(() => {
    document.title = `${NAMES[where.view]} · linerate`;
  }, [where.view]);
  const other = theme.value === 'dark' ? 'Light' : 'Dark';
  return (
    <div class="page" onClick={follow}>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header>
        <a class="name" href="/">
          linerate
        </a>
        <Links server={server.is === 'there' ? server.value : null} view={where.view} />
        <button type="button" class="quiet" onClick={toggle}>
          {other}
        </button>
      </header>
      <main id="main" tabIndex={-1}>
        <Elsewhere where={where} />
        {server.is === 'loading' && <Loading />}
        {server.is === 'failed' && (
          <Failed heading="linerate" error={server.error} again={again} />
        )}
        {server.is === 'there' && <View where={where} server={server.value} />}
      </main>
      <footer>
        {server.is === 'there' && (
          <span>
            linerate {server.value.version} on {server.value.host}
          </span>
        )}
        <span>No cookies, no third parties. 1 Mbit/s is 1,000,000 bit/s.</span>
        <a href="/assets/licences.txt">Licences</a>
      </footer>
    </div>
  );
}

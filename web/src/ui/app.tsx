// The frame of every view: name, navigation, the switch of colours.
import { useEffect } from 'preact/hooks';
import type { JSX } from 'preact';
import { askServer } from '../api/client';
import type { Server } from '../api/types';
import { run } from '../run/drive';
import { isOver } from '../run/machine';
import type { Route } from '../show/route';
import { at, follow } from './nav';
import { Failed, Loading, useLoaded } from './parts';
import { CompareView } from './compare';
import { ResultView } from './result';
import { ResultsView } from './results';
import { SeriesView } from './series';
import { ServerView } from './server';
import { TestView } from './test';
import { theme, toggle } from './theme';

const NAMES: Record<Route['view'], string> = {
  test: 'Test this path',
  results: 'Results',
  result: 'Result',
  compare: 'Two results',
  series: 'Series',
  mesh: 'Mesh',
  run: 'Run from here',
  server: 'Server',
  unknown: 'Not found',
};

function Links({ server, view }: { server: Server | null; view: Route['view'] }): JSX.Element {
  const links: [string, string, boolean][] = [
    ['/', 'Test', view === 'test'],
    ['/results', 'Results', view === 'results' || view === 'result' || view === 'compare'],
    ['/series', 'Series', view === 'series'],
    ['/server', 'Server', view === 'server'],
  ];
  if (server !== null) links.splice(3, 0, ['/run', 'Run from here', view === 'run']);
  if (server?.features.includes('mesh')) links.splice(3, 0, ['/mesh', 'Mesh', view === 'mesh']);
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
      return <ResultsView query={where.query} />;
    case 'result':
      return <ResultView id={where.id} key={where.id} />;
    case 'compare':
      return <CompareView first={where.first} second={where.second} />;
    case 'series':
      return <SeriesView query={where.query} />;
    case 'mesh':
      return <Fetched key="mesh" name="mesh" fetch={mesh} />;
    case 'run':
      return <Fetched key="run" name="run" fetch={runHere(server)} />;
    case 'server':
      return <ServerView />;
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
const mesh = async (): Promise<() => JSX.Element> => (await import('./mesh')).MeshView;
const runHere = (server: Server) => async (): Promise<() => JSX.Element> => {
  const { RunView } = await import('./run_here');
  return () => <RunView server={server} />;
};

function Fetched(view: { name: string; fetch: () => Promise<() => JSX.Element> }): JSX.Element {
  const [found, again] = useLoaded(`view ${view.name}`, view.fetch);
  if (found.is === 'loading') return <Loading />;
  if (found.is === 'failed') return <Failed error={found.error} again={again} />;
  return <found.value />;
}

/** A test goes on while other views are open: a line leads back to it. */
function Elsewhere({ where }: { where: Route }): JSX.Element | null {
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

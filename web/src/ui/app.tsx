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
import { MeshView } from './mesh';
import { ResultView } from './result';
import { ResultsView } from './results';
import { RunView } from './run_here';
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
      return <MeshView />;
    case 'run':
      return <RunView server={server} />;
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

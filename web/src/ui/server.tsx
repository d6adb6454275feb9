// The server: who measures now, the queue, the limits, the ports.
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { askServer } from '../api/client';
import type { Server } from '../api/types';
import { bytes, moment, rate, word } from '../show/units';
import { Failed, Loading, useLoaded } from './parts';

const AGAIN_MS = 2_000;

export function ServerView(): JSX.Element {
  const [state, again] = useLoaded('server-view', askServer);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) again();
    }, AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  if (state.is === 'loading') return <Loading />;
  if (state.is === 'failed') return <Failed heading="Server" error={state.error} again={again} />;
  const server = state.value;
  return (
    <>
      <h1>{server.host}</h1>
      <dl class="figures">
        <div>
          <dt>Tests running</dt>
          <dd>
            <span class="figure">{server.running}</span>
            {server.limits.tests !== null && <small>of {server.limits.tests} at once</small>}
          </dd>
        </div>
        <div>
          <dt>Waiting</dt>
          <dd>
            <span class="figure">{server.waiting}</span>
          </dd>
        </div>
      </dl>
      <Limits server={server} />
      <Ports server={server} />
      <section>
        <h2>This server</h2>
        <Table
          rows={[
            ['Program', `${server.name} ${server.version}`],
            ['Its time', moment(server.now)],
            ['Sees you as', server.client],
            ['Measures from here', server.measure_from_here === false ? 'no' : 'to allowed targets'],
            ['Keeps results', kept(server)],
          ]}
        />
      </section>
    </>
  );
}

/** How long, and how many of them. */
function kept({ features, results_kept: limits }: Server): string {
  if (!features.includes('results')) return 'none';
  const { seconds = null, count = null, bytes: most = null } = limits ?? {};
  const said = [
    seconds === null ? '' : `for ${+(seconds / 86_400).toFixed(1)} days`,
    count === null ? '' : `${count} at most`,
    most === null ? '' : `${bytes(most)} at most`,
  ].filter((it) => it !== '');
  return said.join(', ') || 'all';
}

function Table({ rows }: { rows: [string, string][] }): JSX.Element {
  return (
    <table class="pairs">
      <tbody>
        {rows.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td class="words">{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Limits({ server }: { server: Server }): JSX.Element {
  const { limits } = server;
  const or = (value: number | null, say: (value: number) => string): string =>
    value === null ? 'no limit' : say(value);
  return (
    <section>
      <h2>Limits</h2>
      <Table
        rows={[
          ['Tests at once', or(limits.tests, String)],
          ['Streams of a test', or(limits.streams, String)],
          ['Time of a test', or(limits.seconds, (value) => `${value}\u00a0s`)],
          ['Bytes of a test', or(limits.bytes, (value) => word(bytes(value)))],
          ['Rate of a test', or(limits.rate_bps, (value) => word(rate(value)))],
        ]}
      />
    </section>
  );
}

function Ports({ server }: { server: Server }): JSX.Element {
  const rows: [string, string, string][] = [
    [location.port || '80', 'TCP', 'this page, linerate'],
    ...server.other_programs.map(
      ({ program, port }): [string, string, string] => [String(port), 'TCP', program],
    ),
  ];
  if (server.udp_echo) rows.push([location.port || '5210', 'UDP', 'echo of linerate ping']);
  if (server.stamp_port !== null) {
    rows.push([String(server.stamp_port), 'UDP', 'STAMP and TWAMP-Light reflector']);
  }
  return (
    <section>
      <h2>Ports</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">Port</th>
            <th scope="col" class="words">
              Transport
            </th>
            <th scope="col" class="words">
              For
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([port, transport, use]) => (
            <tr key={`${port}${use}`}>
              <td>{port}</td>
              <td class="words">{transport}</td>
              <td class="words wrap">{use}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

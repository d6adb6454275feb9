// What a test came to: figures, verdict, the table behind them, what the page noticed.
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import type { Direction, Server, Verdict } from '../api/types';
import type { Fate, Stage } from '../load/messages';
import { browserLimited, findings } from '../run/findings';
import { delaysOf, loadedDelays, SETTLE_MS, type Run } from '../run/machine';
import { ownCommands } from '../show/commands';
import { spread, tripsPerMinute, type Spread } from '../show/quantile';
import { bytes, delay, digits, rate, seconds, word, type Quantity } from '../show/units';
import { Charts, rateNow } from './live';
import { CommandLine, Commands, Figure, Notice } from './parts';

const WAYS: readonly Direction[] = ['down', 'up'];
const NAME = { down: 'Download', up: 'Upload' } as const;
const STAGES: readonly Stage[] = ['idle', 'down', 'up'];
const MEMORY = 'last-volume-bytes';

/** Bytes of the last test of this browser, which the next is likely to need again. */
export function remembered(): number | null {
  try {
    const stored = Number(localStorage.getItem(MEMORY));
    return stored > 0 ? stored : null;
  } catch {
    return null;
  }
}

const volume = (now: Run, way: Direction): number =>
  now.parts[way]?.bytes_all ?? now.parts[way]?.bytes ?? 0;

function remember(now: Run): void {
  const all = WAYS.reduce((sum, way) => sum + volume(now, way), 0);
  if (now.phase !== 'done' || all === 0) return;
  try {
    localStorage.setItem(MEMORY, String(all));
  } catch {
    // Next time the page then shows examples only.
  }
}

export function Outcome({ now, server }: { now: Run; server: Server }): JSX.Element {
  useEffect(() => remember(now), [now.phase]);
  const idle = spread(delaysOf(now, 'idle').map(({ ms }) => ms));
  const loaded = {
    down: spread(loadedDelays(now, 'down')),
    up: spread(loadedDelays(now, 'up')),
  };
  return (
    <section class="outcome">
      <Headline now={now} idle={idle} loaded={loaded} />
      <BrowserLimit now={now} />
      <VerdictBlock now={now} />
      <Charts now={now} />
      <Details now={now} idle={idle} loaded={loaded} />
      <Noticed now={now} />
      <Links now={now} server={server} />
    </section>
  );
}

interface Delays {
  now: Run;
  idle: Spread | null;
  loaded: Record<Direction, Spread | null>;
}

function Headline({ now, idle, loaded }: Delays): JSX.Element {
  const figures: [string, string, Quantity, string][] = [
    ['Download', 'down', rate(rateNow(now, 'down')), partial(now, 'down')],
    ['Upload', 'up', rate(rateNow(now, 'up')), partial(now, 'up')],
    ['Idle round trip', 'idle', delay(idle?.median), 'median'],
    ['Loaded, download', 'down', delay(loaded.down?.median), 'median'],
    ['Loaded, upload', 'up', delay(loaded.up?.median), 'median'],
  ];
  return (
    <dl class="figures">
      {figures.map(([name, key, value, note]) => (
        <div key={name}>
          <dt>
            <i class={`key ${key}`} />
            {name}
          </dt>
          <dd>
            <Figure of={value} />
            {note !== '' && value.unit !== '' && <small>{note}</small>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

const partial = (now: Run, way: Direction): string =>
  now.parts[way] === undefined && now.samples[way].length > 0 ? 'last second, not a result' : '';

function BrowserLimit({ now }: { now: Run }): JSX.Element | null {
  const ways = browserLimited(now);
  if (ways.length === 0) return null;
  const port = Number(location.port || 5210);
  const words = ways.map((way) => {
    const said = now.parts[way]?.limited_by?.say;
    return `${NAME[way]}: ${word(rate(now.parts[way]?.rate_bps))}. ${said ?? ''}`;
  });
  return (
    <Notice title="Your browser is the limit: type this" kind="limit">
      <ul>
        {words.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
      <p>The path carries at least this much. How much more, a program on this computer shows:</p>
      <Commands list={ownCommands(location.hostname, port)} />
    </Notice>
  );
}

/** A server may name a line alone or with the end where it is typed. */
export const commandLine = (command: Verdict['commands'][number]): string =>
  typeof command === 'string'
    ? command
    : command.at === undefined
      ? command.line
      : `${command.line}   # at ${command.at}`;

export function VerdictWords({ verdict }: { verdict: Verdict }): JSX.Element {
  const { evidence, remedy, next_limit: limit } = verdict;
  return (
    <div class="verdict">
      <p class="headline">{verdict.headline}</p>
      {verdict.confidence !== null && <p class="soft">Confidence: {verdict.confidence}</p>}
      {evidence.length > 0 && <Points title="Evidence" points={evidence} />}
      {remedy.length > 0 && <Points title="Remedy" points={remedy} />}
      {limit !== null && (
        <>
          <h3>Next limit</h3>
          <p>
            {limit.rate_bps !== null && `${word(rate(limit.rate_bps))}: `}
            {limit.say}
          </p>
        </>
      )}
      {verdict.commands.length > 0 && (
        <ul class="commands">
          {verdict.commands.map(commandLine).map((line) => (
            <li key={line}>
              <CommandLine line={line} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** A verdict for each direction, the lines to type after the last. */
function Ways({ verdict }: { verdict: Verdict }): JSX.Element {
  const ways = verdict.ways ?? [];
  if (ways.length < 2) return <VerdictWords verdict={verdict} />;
  return (
    <>
      {ways.map((one, index) => (
        <section key={one.direction} class="way">
          <h3>{one.direction ? NAME[one.direction] : ''}</h3>
          <VerdictWords
            verdict={index === ways.length - 1 ? { ...one, commands: verdict.commands } : one}
          />
        </section>
      ))}
    </>
  );
}

function Points({ title, points }: { title: string; points: string[] }): JSX.Element {
  return (
    <>
      <h3>{title}</h3>
      <ul>
        {points.map((point) => (
          <li key={point}>{point}</li>
        ))}
      </ul>
    </>
  );
}

function VerdictBlock({ now }: { now: Run }): JSX.Element | null {
  if (now.verdict !== null) {
    return (
      <section>
        <h2>What limits it</h2>
        <Ways verdict={now.verdict} />
      </section>
    );
  }
  if (now.phase !== 'done' || now.admitted?.directions.length === 0) return null;
  return (
    <Notice title="No verdict">
      <p>The server gave the figures and no verdict in time; the stored results may have one.</p>
    </Notice>
  );
}

/** Loss and jitter, both ways apart: of 500 at rest, of as many as there was time for beside load. */
function datagramRows(now: Run): [string, string, string, string][] {
  const row = (name: string, way: Direction, show: (fate: Fate) => string) => {
    const cells = STAGES.map((stage) => {
      const fate = now.rounds[stage]?.[way];
      return fate === undefined ? 'n/a' : show(fate);
    });
    return [`${name}, ${way}`, ...cells] as [string, string, string, string];
  };
  const rows = (name: string, show: (fate: Fate) => string) => WAYS.map((way) => row(name, way, show));
  return [
    ...rows('Datagrams lost', ({ lost, sent }) => `${lost} of ${sent}`),
    ...rows('Jitter', ({ jitter_us: us }) => word(delay(us === null ? null : us / 1000))),
    ...rows('Out of order', ({ reordered }) => String(reordered)),
  ];
}

function Details({ now, idle, loaded }: Delays): JSX.Element {
  const trips = (spreadOf: Spread | null): string =>
    spreadOf === null ? '–' : digits(tripsPerMinute(spreadOf.median));
  const part = (way: Direction) => now.parts[way];
  const retransmits = (way: Direction): string => {
    const last = now.samples[way].at(-1)?.retransmits;
    return last === undefined || last === null ? 'not measured' : String(last);
  };
  const each = (cell: (way: Direction) => string): [string, string] => [cell('down'), cell('up')];
  const rows: [string, string, string, string][] = [
    ['Goodput', '', ...each((way) => word(rate(part(way)?.rate_bps)))],
    ['Payload that counts', '', ...each((way) => word(bytes(part(way)?.bytes)))],
    ['Payload, server’s count', '', ...each((way) => word(bytes(part(way)?.bytes_all ?? part(way)?.bytes)))],
    ['Payload, browser’s count', '', ...each((way) => word(bytes(now.seen[way].bytes)))],
    ['Time that counts', '', ...each((way) => word(seconds(part(way)?.seconds)))],
    ['Connections', '', ...each((way) => String(now.seen[way].streams))],
    ['Retransmitted segments', '', ...each(retransmits)],
    ['Round trip, minimum', word(delay(idle?.min)), ...each((way) => word(delay(loaded[way]?.min)))],
    ['Round trip, median', word(delay(idle?.median)), ...each((way) => word(delay(loaded[way]?.median)))],
    ['Round trip, 99th percentile', word(delay(idle?.p99)), ...each((way) => word(delay(loaded[way]?.p99)))],
    ['Round trips measured', String(idle?.count ?? 0), ...each((way) => String(loaded[way]?.count ?? 0))],
    ['Round trips per minute', trips(idle), ...each((way) => trips(loaded[way]))],
    ...datagramRows(now),
  ];
  const omitted = part('down')?.omitted_s ?? part('up')?.omitted_s ?? 0;
  return (
    <section>
      <h2>Figures</h2>
      <div class="scroll figures-table" tabIndex={0} role="region" aria-label="Figures">
        <table>
          <thead>
            <tr>
              <th scope="col">
                <span class="away">What</span>
              </th>
              <th scope="col">Idle</th>
              <th scope="col">Download</th>
              <th scope="col">Upload</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([name, ...cells]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                {cells.map((cell, index) => (
                  <td key={index}>{cell}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="soft small">
        Goodput is payload that arrived, by the server’s count and clock
        {omitted > 0 && `, without the first ${omitted}\u00a0s of each direction, when connections start`}.
        Round trips are those of a
        WebSocket message beside the load, counted from {SETTLE_MS / 1000} s after its start; round
        trips per minute are 60{'\u00a0'}s by their median, not the RPM of Apple’s networkQuality.{' '}
        {now.unsent === null
          ? 'Lost is a datagram of 100 bytes over WebTransport that did not come within 1 s of the last; ' +
            'jitter is that of RFC 3550.'
          : `Where loss is n/a: ${now.unsent}, and a browser’s TCP hides it.`}
      </p>
    </section>
  );
}

function Noticed({ now }: { now: Run }): JSX.Element | null {
  const list = findings(now, globalThis.crossOriginIsolated === true);
  if (list.length === 0) return null;
  return (
    <section>
      <h2>What bears on the figures</h2>
      <dl class="noticed">
        {list.map(({ title, evidence, effect }) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd>
              {evidence} {effect}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Links({ now }: { now: Run; server: Server }): JSX.Element | null {
  const named = WAYS.flatMap((way) => {
    const id = now.parts[way]?.record;
    return id ? [{ id, name: NAME[way] }] : [];
  });
  const id = now.admitted?.run;
  if (named.length === 0 || id === undefined) return null;
  const whole = `/results?run=${id}`;
  return (
    <p>
      <a href={whole}>This test</a> has a permanent address to share:{' '}
      <CommandLine line={new URL(whole, location.href).href} />
      <br />
      Each direction has its own:{' '}
      {named.map(({ id, name }, index) => (
        <span key={id}>
          {index > 0 && ', '}
          <a href={`/results/${id}`}>{name}</a>
        </span>
      ))}
      .
    </p>
  );
}

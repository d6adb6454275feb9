// "Run from here": measurements from this server to targets that its operator allows. Off unless
// the server says that it is on.
import type { JSX } from 'preact';
import type { Server } from '../api/types';
import { CommandLine, Notice } from './parts';

export function RunView({ server }: { server: Server }): JSX.Element {
  const allowed = server.measure_from_here;
  return (
    <>
      <h1>Run from {server.host}</h1>
      {allowed === false ? (
        <Notice title="This server measures to nobody">
          <p>
            It connects out only where its operator allows it, and none is allowed.
            Until then, type this on the server itself:
          </p>
          <CommandLine line="linerate test HOST" />
        </Notice>
      ) : (
        <Notice title="Allowed targets">
          <p>The page cannot start these yet; on the server itself:</p>
          <ul class="commands">
            {allowed.targets.map((target) => (
              <li key={target}>
                <CommandLine line={`linerate test ${target}`} />
              </li>
            ))}
          </ul>
        </Notice>
      )}
    </>
  );
}

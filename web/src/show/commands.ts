// Lines to type for the same path with a program instead of a browser: only what this server
// says it answers, with its ports.
import type { Server } from '../api/types';

export interface Command {
  program: string;
  line: string;
  does: string;
}

/** Ports that the programs take when none is given. */
const USUAL: Record<string, number> = { iperf3: 5201, iperf: 5001, nuttcp: 5000, ttcp: 5001 };

/** An address in brackets is for URLs; programs take it bare. */
export const bare = (host: string): string => host.replace(/^\[(.*)\]$/, '$1');

/** The names under which a server may list a program. */
const plain = (program: string): string => {
  const name = program.toLowerCase().replaceAll(' ', '');
  return name === 'iperf2' ? 'iperf' : name;
};

function foreign(program: string, port: number, host: string): Command[] {
  const other = port === USUAL[program] ? '' : ` -p ${port}`;
  switch (program) {
    case 'iperf3':
      return [
        { program, line: `iperf3 -c ${host}${other} -R`, does: 'download' },
        { program, line: `iperf3 -c ${host}${other}`, does: 'upload' },
      ];
    case 'iperf':
      return [{ program, line: `iperf -c ${host}${other} -i 1`, does: 'upload' }];
    case 'nuttcp': {
      const at = port === USUAL.nuttcp ? '' : ` -P${port}`;
      return [
        { program, line: `nuttcp${at} -r -i1 ${host}`, does: 'download' },
        { program, line: `nuttcp${at} -i1 ${host}`, does: 'upload' },
      ];
    }
    case 'ttcp':
      return [{ program, line: `ttcp -t -s${other} ${host}`, does: 'upload' }];
    default:
      return [];
  }
}

/** What to type when the browser is the limit. */
export function ownCommands(hostName: string, port: number): Command[] {
  const host = bare(hostName);
  const other = port === 5210 ? '' : ` -p ${port}`;
  const program = 'linerate';
  return [
    { program, line: `linerate tcp ${host}${other} -R`, does: 'download' },
    { program, line: `linerate tcp ${host}${other}`, does: 'upload' },
    { program, line: `linerate test ${host}${other}`, does: 'all of it, with the verdict' },
  ];
}

export function commands(server: Server, location: { hostname: string; port: string }): Command[] {
  const host = bare(location.hostname);
  const port = Number(location.port || 5210);
  const list = ownCommands(host, port);
  for (const { program, port: at } of server.other_programs) {
    list.push(...foreign(plain(program), at, host));
  }
  if (server.stamp_port !== null) {
    const at = server.stamp_port === 862 ? '' : ` -p ${server.stamp_port}`;
    list.push({
      program: 'linerate',
      line: `linerate stamp ${host}${at}`,
      does: 'delay and loss, each direction',
    });
  }
  if (server.features.includes('networkquality')) {
    list.push({
      program: 'networkQuality',
      line: `networkQuality -C https://${location.hostname}:${port}/.well-known/nq`,
      does: 'responsiveness, on a Mac',
    });
  }
  list.push({ program: 'ping', line: `ping ${host}`, does: 'round trips by ICMP' });
  return list;
}

// Runs tests/browser/*.test.mjs in two lanes at once: one has those that judge what was measured, one
// behind the other, the other those that look at what the page shows and waits for.
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const LANES = [
  ['leg', 'datagrams', 'way_in'],
  ['studies', 'way', 'trouble', 'from_here', 'views'],
];

const at = fileURLToPath(new URL('browser/', import.meta.url));
const known = readdirSync(at).filter((name) => name.endsWith('.test.mjs'));
const named = LANES.flat().map((name) => `${name}.test.mjs`);
if (known.toSorted().join() !== named.toSorted().join()) {
  throw new Error(`tests/browser has ${known}; the lanes have ${named}`);
}

/** The exit code of a lane. */
function run(lane) {
  const files = lane.map((name) => `${at}${name}.test.mjs`);
  const words = ['--test', '--test-concurrency=1', '--test-reporter=spec', ...files];
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'inherit', 'inherit'] });
  return new Promise((done) => {
    child.on('close', (code) => done(code ?? 1));
  });
}

const codes = await Promise.all(LANES.map(run));
process.exit(Math.max(...codes));

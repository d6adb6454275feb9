// Runs tests/unit/*.test.ts by Node's own test runner. Node 20 does not read TypeScript: the bundler
// that builds the page makes plain modules of them first.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const out = at('../node_modules/.cache/unit/');
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const tests = readdirSync(at('unit')).filter((name) => name.endsWith('.test.ts'));
await build({
  configFile: false,
  logLevel: 'error',
  root: at('..'),
  build: {
    ssr: true,
    target: 'node20',
    outDir: out,
    rollupOptions: { input: tests.map((name) => at(`unit/${name}`)) },
  },
});
const built = readdirSync(out).filter((name) => name.endsWith('.test.js'));
if (built.length !== tests.length) throw new Error(`${built.length} of ${tests.length} tests built`);
const files = built.map((name) => out + name);
const { status } = spawnSync(process.execPath, ['--test', '--test-reporter=spec', ...files], { stdio: 'inherit' });
process.exit(status ?? 1);

// "Which leg": two real servers, and relays of limited rate between the browser and both, and between
// them: the leg that is limited is the one that is named. And what a visitor reads where it cannot be.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { barriers, json, serve, shots, tooWide, until, visit } from './common.mjs';

const POLICY = `[[rule]]
name = "here"
from = ["127.0.0.0/8"]
results = true
measure_to = ["127.0.0.2"]
`;
/** Far below what loopback carries; what sockets hold of one stream, some 4 MB, is through in 3 s. */
const SLOW_BPS = 12e6;
/** A link catches up with what a late timer cost it. */
const CATCHES_UP_MS = 500;
const WHOLE_MS = 180_000;
const TURNS = 5;
const LINGER_MS = 2_000;

const ends = [];
after(() => ends.forEach((end) => end()));

/** One way of a link: pieces go one behind the other, each in its time; without a rate at once. */
class Way {
  rate = Infinity;
  free = 0;

  async take(bytes) {
    const now = performance.now();
    this.free = Math.max(this.free, now - CATCHES_UP_MS) + (bytes * 8_000) / this.rate;
    if (this.free > now) await new Promise((wake) => setTimeout(wake, this.free - now));
  }
}

const link = () => ({ down: new Way(), up: new Way() });
const limit = ({ down, up }, rate) => {
  down.rate = rate;
  up.rate = rate;
};

/** Carries connections to `relay.to` over the links that `links` names for the first bytes of one. */
async function relay(links, port = 0, address = '127.0.0.1') {
  const self = { to: null, base: '', host: '' };
  const open = new Set();
  const listener = createServer((near) => {
    const far = connect({ host: '127.0.0.1', port: new URL(self.to).port, noDelay: true });
    near.setNoDelay(true);
    let over = null;
    const carry = (from, to, way) => {
      open.add(from);
      let last = Promise.resolve();
      const pass = async (piece) => {
        for (const one of over) await one[way].take(piece.length);
        if (!to.destroyed && !to.write(piece)) {
          await new Promise((free) => {
            const go = () => {
              to.off('drain', go).off('close', go);
              free();
            };
            to.on('drain', go).on('close', go);
          });
        }
        from.resume();
      };
      from.on('data', (piece) => {
        over ??= links(piece.subarray(0, 8).toString('latin1'));
        from.pause();
        last = pass(piece);
      });
      from.on('error', () => {});
      from.on('close', async () => {
        open.delete(from);
        // What is under way arrives before the end does.
        await last;
        to.end();
        setTimeout(() => to.destroy(), LINGER_MS).unref();
      });
    };
    carry(near, far, 'up');
    carry(far, near, 'down');
  });
  await new Promise((done) => listener.listen(port, address, done));
  self.host = `${address}:${listener.address().port}`;
  self.base = `http://${self.host}`;
  self.close = () => {
    open.forEach((one) => one.destroy());
    listener.close();
  };
  ends.push(self.close);
  return self;
}

const isBrowser = (first) => /^(GET|POST|HEAD|OPTIONS|DELETE) /.test(first);

describe('which leg is worse', () => {
  const folder = mkdtempSync(join(tmpdir(), 'linerate-leg-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const policy = join(folder, 'policy.toml');
  const [inner, outer] = [link(), link()];
  let near;
  let far;
  let here;
  before(async () => {
    writeFileSync(policy, POLICY);
    near = await relay(() => [inner]);
    const there = await serve({
      time: '3s',
      more: ['--allow-origin', near.base, '--max-streams', '1'],
    });
    // What comes from the device goes over both links, what comes from the server here over one. On the
    // port of the server outside, to which its clients open their connections of data.
    const links = (first) => (isBrowser(first) ? [inner, outer] : [outer]);
    far = await relay(links, Number(new URL(there.base).port), '127.0.0.2');
    here = await serve({ time: '60s', more: ['--policy', policy, '--outer', far.host] });
    near.to = here.base;
    far.to = there.base;
  });

  /** What the page says once it names what is expected. Where this machine is held up for seconds a test
   *  ends in words, or its figures do not fit, and it is made again: five times wrong is wrong. */
  async function judged(tab, expected) {
    for (let turn = 1; ; turn += 1) {
      await tab.getByRole('button', { name: /^Measure (both legs|again)$/ }).click();
      await tab.getByRole('button', { name: 'Stop' }).waitFor();
      await tab.getByRole('button', { name: 'Measure again' }).waitFor({ timeout: WHOLE_MS });
      const said = await tab.locator('main').innerText();
      if (expected.test(said)) return said;
      assert.ok(turn < TURNS, said);
    }
  }

  it('names the leg to the server here where that is limited, then the one beyond', async () => {
    const { tab, sound, close } = await visit(near.base, '/leg', { also: [far.host] });
    assert.match(await tab.locator('nav').innerText(), /Which leg/);
    limit(inner, SLOW_BPS);
    const said = await judged(tab, /^Worse: the leg to /m);
    assert.match(said, /Download: .* over the leg to .* over the whole way/);
    await shots(tab, 'leg');
    assert.deepEqual(await barriers(tab), []);
    for (const width of [1280, 420]) {
      await tab.setViewportSize({ width, height: 900 });
      await until(`it fits ${width} px`, async () => (await tooWide(tab)) <= 0);
    }
    // What it names is stored at both servers: two tests of this browser, two from here.
    const { results } = await json(`${here.base}/api/v1/results`);
    const rates = results.filter(({ kind }) => kind === 'tcp').map(({ rate_bps }) => rate_bps);
    assert.ok(rates.length >= 4, `${rates}`);
    limit(inner, Infinity);
    limit(outer, SLOW_BPS);
    await judged(tab, /^Worse: the leg from there to /m);
    limit(outer, Infinity);
    sound();
    await close();
  });

  it('can be stopped, and the page tests this path again', async () => {
    const { tab, close } = await visit(near.base, '/leg', { also: [far.host] });
    await tab.getByRole('button', { name: 'Measure both legs' }).focus();
    await tab.keyboard.press('Enter');
    await tab.getByText(/^Device to /).first().waitFor();
    await tab.getByRole('link', { name: 'Results', exact: true }).click();
    await tab.getByText('Both legs are being measured').waitFor();
    await tab.getByRole('link', { name: 'back to it' }).click();
    await tab.getByRole('button', { name: 'Stop' }).click();
    await tab.getByRole('heading', { name: 'Stopped' }).waitFor();
    await tab.getByRole('link', { name: 'Test', exact: true }).click();
    await tab.getByRole('button', { name: 'Test this path' }).waitFor();
    await close();
  });

  it('says that the server outside does not let this page in, and what its operator types', async () => {
    const closed = await serve();
    const { host } = new URL(closed.base);
    const asks = await serve({ more: ['--policy', policy, '--outer', host] });
    const { tab, close } = await visit(asks.base, '/leg', { also: [host] });
    await tab.getByRole('button', { name: 'Measure both legs' }).click();
    await tab.getByRole('heading', { name: `${host} refuses` }).waitFor();
    await tab.getByText(`--allow-origin ${asks.base}`).waitFor();
    assert.deepEqual(await barriers(tab), []);
    await closed.stop();
    await tab.getByRole('button', { name: 'Measure again' }).click();
    await tab.getByRole('heading', { name: `${host} does not answer this device` }).waitFor();
    await close();
  });

  it('says that the server here may not measure there', async () => {
    const none = join(folder, 'none.toml');
    writeFileSync(none, POLICY.replace('"127.0.0.1"', '"198.51.100.1"'));
    const other = await serve({ time: '1s', more: ['--allow-origin', 'any'] });
    const { host } = new URL(other.base);
    const asks = await serve({ time: '1s', more: ['--policy', none, '--outer', host] });
    const { tab, close } = await visit(asks.base, '/leg', { also: [host] });
    await tab.getByRole('button', { name: 'Measure both legs' }).click();
    await tab.getByRole('heading', { name: `From here to ${host}: refused or failed` }).waitFor({ timeout: 60_000 });
    await tab.getByText(/no measurement to 127\.0\.0\.1/).waitFor();
    await close();
  });

  it('says that no server outside is named', async () => {
    const { tab, close } = await visit((await serve()).base, '/leg');
    await tab.getByRole('heading', { name: 'No server outside is named' }).waitFor();
    assert.deepEqual(await barriers(tab), []);
    await close();
  });
});

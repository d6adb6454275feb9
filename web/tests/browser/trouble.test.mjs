// What goes wrong is said where a person looks, and nothing waits for ever.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { json, serve, until, visit } from './common.mjs';

const start = (tab) => tab.getByRole('button', { name: 'Test this path' }).click();
const running = async (base) => (await json(`${base}/api/v1/server`)).running;

describe('when something goes wrong', () => {
  it('a busy server tells the place in line, and the test begins by itself', async () => {
    const server = await serve();
    const first = await visit(server.base);
    const second = await visit(server.base);
    await start(first.tab);
    await first.tab.locator('.steps .current').waitFor();
    await start(second.tab);
    const notice = second.tab.locator('.notice', { hasText: 'The server is busy' });
    await notice.waitFor();
    assert.match(await notice.innerText(), /number 1 in the queue/);
    await second.tab.getByRole('heading', { name: 'What limits it' }).waitFor();
    await first.tab.getByRole('heading', { name: 'What limits it' }).waitFor();
    assert.equal((await json(`${server.base}/api/v1/results`)).results.length, 4);
    await Promise.all([first.close(), second.close()]);
  });

  it('a closed tab gives its place back, and so does Stop', async () => {
    const server = await serve({ time: '6s' });
    const { tab, close } = await visit(server.base);
    await start(tab);
    await tab.locator('.steps .current', { hasText: 'Download' }).waitFor();
    assert.equal(await running(server.base), 1);
    await close();
    await until('the place is free', async () => (await running(server.base)) === 0);
    const other = await visit(server.base);
    await start(other.tab);
    await other.tab.getByRole('button', { name: 'Stop' }).click();
    await other.tab.getByRole('heading', { name: 'Stopped' }).waitFor();
    await until('the place is free', async () => (await running(server.base)) === 0);
    await other.close();
  });

  it('a server that dies in the middle is said to have gone', async () => {
    const server = await serve({ time: '6s' });
    const { tab, close } = await visit(server.base);
    await start(tab);
    await tab.locator('.steps .current', { hasText: 'Download' }).waitFor();
    await server.stop();
    await tab.getByRole('alert').waitFor();
    assert.match(await tab.getByRole('alert').innerText(), /stopped|silent|closed|lost|refused/);
    await tab.getByRole('button', { name: 'Try again' }).click();
    await tab.getByText('cannot be reached').waitFor();
    await close();
  });

  it('an answer that is not of linerate is said to be none', async () => {
    const server = await serve();
    const { tab, close } = await visit(server.base);
    const page = { status: 502, contentType: 'text/html', body: '<h1>Bad gateway</h1>' };
    await tab.route('**/api/v1/runs', (route) => route.fulfill(page));
    await start(tab);
    assert.match(await tab.getByRole('alert').innerText(), /HTTP 502 without words of linerate/);
    await tab.route('**/api/v1/results?**', (route) =>
      route.fulfill({ status: 200, contentType: 'application/json', body: '{"results": [' }),
    );
    await tab.getByRole('link', { name: 'Results' }).click();
    assert.match(await tab.getByRole('alert').innerText(), /not of linerate/);
    await close();
  });

  it('a link to a result that is not there says so', async () => {
    const server = await serve();
    const context = await visit(server.base, '/');
    await context.tab.goto(`${server.base}/results/00000000-0000-0000-0000-000000000000`);
    await context.tab.getByRole('alert').waitFor();
    assert.match(await context.tab.getByRole('alert').innerText(), /result/);
    await context.close();
  });
});

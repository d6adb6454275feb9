// The build of the page: one script, one sheet, the workers and views of few apart, names by content, nothing inline,
// so that it runs under `script-src 'self'; style-src 'self'` and the same sources give the same bytes.
import { readFileSync } from 'node:fs';
import { defineConfig, type Plugin } from 'vite';

/** Licences of what is bundled: MIT asks that the notice goes with each copy. */
const bundled = ['preact', '@preact/signals', '@preact/signals-core', 'uplot'];

const licences: Plugin = {
  name: 'licences',
  generateBundle() {
    const parts = bundled.map((name) => {
      const at = `node_modules/${name}`;
      const { version } = JSON.parse(readFileSync(`${at}/package.json`, 'utf8'));
      return `${name} ${version}\n\n${readFileSync(`${at}/LICENSE`, 'utf8').trim()}\n`;
    });
    this.emitFile({
      type: 'asset',
      fileName: 'assets/licences.txt',
      source: parts.join('\n----\n\n'),
    });
  },
};

/** Of a view that is fetched; what such views share may belong to the first load too, and counts. */
const chunkFileNames = ({ isDynamicEntry }: { isDynamicEntry: boolean }): string =>
  isDynamicEntry ? 'assets/later/[name]-[hash].js' : 'assets/[name]-[hash].js';

export default defineConfig({
  plugins: [licences],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  worker: { format: 'es' },
  build: {
    target: ['chrome123', 'firefox121', 'safari17.5'],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // What only views of few load is apart by its folder, and does not count to the page's size.
    rolldownOptions: { output: { chunkFileNames } },
    reportCompressedSize: true,
  },
  server: { proxy: { '/api': { target: 'http://127.0.0.1:5210', ws: true } } },
});

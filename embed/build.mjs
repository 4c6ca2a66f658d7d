// Makes what a page of another application loads, from the modules in static/: one script with all widgets, their style and
// their drawings (static/taskbell.js), and for each language the words that this script can ask for (static/i18n/*.widgets.json).
//
//   node embed/build.mjs        writes them
//   node embed/build.mjs check  fails when what is there is not what the sources give
//   node embed/build.mjs sizes  tells what each module and each part costs
//
// The output is committed, so that building taskbell needs no node. Needs tests/npm. Our own pages load the modules as they are.
import { createRequire } from 'node:module';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);
const from = (name) => join(root, 'static', name);
const require = createRequire(join(root, 'target/node/'));
const { build, transform } = require('esbuild');
const { minify } = require('terser');
const mode = process.argv[2] ?? 'write';

const { modules } = await bundle({});
const { text, inputs } = await bundle(drawings(modules));
const script = await smallest(text);
const made = new Map([['taskbell.js', script]]);
for (const name of readdirSync(from('i18n')).filter((name) => /^[\w-]+\.json$/.test(name))) {
  made.set(`i18n/${name.replace('.json', '.widgets.json')}`, words(readFileSync(from(`i18n/${name}`), 'utf8')));
}

if (mode === 'sizes') for (const [name, { bytesInOutput }] of Object.entries(inputs)) tell(bytesInOutput, `${name} before gzip`);
let stale = 0;
for (const [name, text] of made) {
  if (mode === 'sizes') tell(gzipSync(text, { level: 9 }).length, name);
  else if (mode === 'write') writeFileSync(from(name), text);
  else if (readFileSync(from(name), 'utf8') !== text) stale = console.error(`static/${name} is not what its sources give: run node embed/build.mjs`) ?? 1;
}
process.exitCode = stale;

function tell(bytes, what) {
  console.log(String(bytes).padStart(7), what);
}

/** The modules as one, with the style and these drawings in it. */
async function bundle(drawings) {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root, entryPoints: [join(here, 'taskbell.js')], bundle: true, write: false, metafile: true, minify: true, format: 'esm', target: 'es2022', charset: 'utf8', logLevel: 'warning',
    plugins: [{
      name: 'place',
      setup({ onResolve, onLoad }) {
        onResolve({ filter: /^\.\/place\.js$/ }, () => ({ path: join(here, 'place.js') }));
        onResolve({ filter: /^made$/ }, () => ({ path: 'made', namespace: 'made' }));
        onLoad({ filter: /./, namespace: 'made' }, async () => ({ contents: `export const style = ${JSON.stringify(await style())}, drawings = ${JSON.stringify(drawings)};` }));
      },
    }],
  });
  const { inputs } = Object.values(metafile.outputs)[0];
  return { text: outputFiles[0].text, inputs, modules: Object.keys(inputs).filter((name) => name.startsWith('static/')) };
}

/** The same in fewer bytes. */
async function smallest(text) {
  const { code } = await minify(text, { module: true, ecma: 2022, compress: { passes: 3, hoist_funs: true } });
  return `// Made by embed/build.mjs\n${code}\n`;
}

async function style() {
  const { code } = await transform(readFileSync(from('taskbell.css'), 'utf8'), { loader: 'css', minify: true, charset: 'utf8' });
  return code.trim();
}

/** The drawings of all states, and those that a module asks for by name, as `{name: [shape, …]}`: a path's data, or tag and attributes. */
function drawings(modules) {
  const [states, others] = readFileSync(from('icons.svg'), 'utf8').split('<!-- acts -->');
  const text = modules.map((path) => readFileSync(join(root, path), 'utf8')).join('\n');
  const named = new Set([...text.matchAll(/(?:icon(?:Button)?\(|symbol(?:: | = ))'([\w-]+)'/g)].map(([, name]) => name));
  const symbols = (part) => [...part.matchAll(/<symbol id="([\w-]+)" viewBox="0 0 16 16">(.*?)<\/symbol>/g)];
  return Object.fromEntries([...symbols(states), ...symbols(others).filter(([, name]) => named.has(name))]
    .map(([, name, shapes]) => [name, [...shapes.matchAll(/<(\w+) ([^>]*)\/>/g)].map(([, tag, inner]) => shape(tag, attributes(inner)))]));
}

function attributes(inner) {
  return Object.fromEntries([...inner.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, name, value]) => [name, value]));
}

function shape(tag, given) {
  return tag === 'path' && Object.keys(given).length === 1 ? given.d : [tag, given];
}

/** The entries of a catalogue that the script can ask for: those it names, and those below a name that it completes. */
function words(catalogue) {
  const names = new Set([...script.matchAll(/["'`]([a-z][\w.-]*)["'`]/g)].map(([, name]) => name));
  const stems = [...script.matchAll(/["'`]([a-z][\w.-]*\.)(?:["'`]\+|\$\{)/g)].map(([, stem]) => stem);
  const wanted = Object.entries(JSON.parse(catalogue)).filter(([key]) => names.has(key) || stems.some((stem) => key.startsWith(stem)));
  return `${JSON.stringify(Object.fromEntries(wanted))}\n`;
}

// Runs a model that was compiled to WebAssembly once.
//   node run.mjs MODULE INPUT '{"outputs": [bytes, ...], "workspace": bytes}'     prints {code, result: [hex, ...]}
import { readFileSync } from "node:fs";

const module = new WebAssembly.Module(readFileSync(process.argv[2]));
const input = new Uint8Array(readFileSync(process.argv[3]));
const sizes = JSON.parse(process.argv[4]);
const math = { expf: Math.exp, tanhf: Math.tanh, logf: Math.log };
const env = {};
for (const { name } of WebAssembly.Module.imports(module)) {
  if (!(name in math)) throw new Error(`the module needs ${name}`);
  env[name] = math[name];
}
const { exports } = new WebAssembly.Instance(module, { env });

let top = (exports.__heap_base.value + 63) & ~63;
const take = (bytes) => {
  const at = top;
  top = (top + bytes + 63) & ~63;
  return at;
};
const given = take(input.length);
const outputs = sizes.outputs.map(take);
const workspace = take(sizes.workspace);
const [inputTable, outputTable, workspaceTable] = [4, 4 * outputs.length, 4].map(take);
const missing = top - exports.memory.buffer.byteLength;
if (missing > 0) exports.memory.grow(Math.ceil(missing / 65536));

const memory = exports.memory.buffer;
new Uint8Array(memory, given).set(input);
const words = new Uint32Array(memory);
words[inputTable / 4] = given;
outputs.forEach((place, index) => { words[outputTable / 4 + index] = place; });
words[workspaceTable / 4] = workspace;
const code = exports.model_run(inputTable, outputTable, workspaceTable, 0);
const result = outputs.map((place, index) => Buffer.from(memory, place, sizes.outputs[index]).toString("hex"));
console.log(JSON.stringify({ code, result }));

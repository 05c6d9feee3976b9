// Run the core away from the page, so that the page stays quick. Everything comes from this folder.
//
// Python and the core start from a snapshot of their memory if this folder has one. Without it they start from the
// archive, which takes longer. The address "worker.js#record" makes the snapshot: `make site` asks for it.
import { loadPyodide } from "./pyodide.mjs";

const place = new URL(".", import.meta.url).href;
const options = { indexURL: place, checkAPIVersion: false };

async function started() {
  const python = await loadPyodide({ ...options, _makeSnapshot: recording });
  const content = await fetch(place + "stablecast.zip");
  python.unpackArchive(new Uint8Array(await content.arrayBuffer()), "zip", { extractDir: "/stablecast" });
  python.runPython('import sys; sys.path.insert(0, "/stablecast"); import page');
  return python;
}

async function resumed() {
  const answer = await fetch(place + "snapshot.bin");
  if (!answer.ok) return null;
  const memory = new Response(answer.body.pipeThrough(new DecompressionStream("gzip")));
  return loadPyodide({ ...options, _loadSnapshot: await memory.arrayBuffer() });
}

async function record() {
  const python = await started();
  python.runPython("import gc; gc.collect()");
  const memory = new Response(python.makeMemorySnapshot()).body.pipeThrough(new CompressionStream("gzip"));
  postMessage({ snapshot: await new Response(memory).blob() });
}

async function ready() {
  const quick = await resumed().catch((error) => void console.warn("The snapshot does not fit this browser:", error));
  const python = quick ?? (await started());
  return { page: python.pyimport("page"), from: quick ? "snapshot" : "archive" };
}

const recording = self.location.hash === "#record";
const core = recording ? record() : ready();
core.catch((error) => postMessage({ failed: String(error) }));

onmessage = async ({ data }) => {
  try {
    const { page, from } = await core;
    postMessage({ number: data.number, from, film: page.film(JSON.stringify(data.world)) });
  } catch (error) {
    postMessage({ number: data.number, failed: String(error) });
  }
};

// Run the core away from the page, so that the page stays quick. Everything comes from this folder.
import { loadPyodide } from "./pyodide.mjs";

const place = new URL(".", import.meta.url).href;
const ready = (async () => {
  const content = fetch(place + "stablecast.zip").then((answer) => answer.arrayBuffer());
  const python = await loadPyodide({ indexURL: place, checkAPIVersion: false });
  python.unpackArchive(new Uint8Array(await content), "zip", { extractDir: "/stablecast" });
  await python.runPythonAsync('import sys; sys.path.insert(0, "/stablecast"); import page');
  return python.pyimport("page");
})();

ready.then(
  () => postMessage({ ready: true }),
  (error) => postMessage({ failed: String(error) }),
);

onmessage = async ({ data }) => {
  try {
    const page = await ready;
    postMessage({ number: data.number, film: page.film(JSON.stringify(data.world)) });
  } catch (error) {
    postMessage({ number: data.number, failed: String(error) });
  }
};

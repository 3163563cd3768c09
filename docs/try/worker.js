// Python, off the page's thread. The page starts it with the address of its folder, and then sends what to read.
let python, Answers, answers;

async function load({ home, files }) {
  const total = files.reduce((sum, file) => sum + file.bytes, 0), held = {};
  let done = 0;
  for (const { name } of files) {
    const parts = [];
    for await (const part of (await fetch(home + name)).body) {
      done += part.length;
      parts.push(part);
      postMessage({ kind: "progress", text: `Loading Python: ${(done / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB`, part: done / total });
    }
    const [, plain, packed] = name.match(/^(.*?)(\.packed)?$/), blob = new Blob(parts);
    held[home + plain] = packed ? await new Response(blob.stream().pipeThrough(new DecompressionStream("gzip"))).blob() : blob;
  }
  postMessage({ kind: "progress", text: "Starting Python …", part: 1 });
  // What Pyodide asks for is here already.
  const asking = fetch, headers = { "Content-Type": "application/wasm" };
  self.fetch = async (url, ...how) => (held[url] ? new Response(held[url], { headers }) : asking(url, ...how));
  const { loadPyodide } = await import(home + "pyodide.mjs");
  python = await loadPyodide({ indexURL: home, env: { HOME: "/given", CACHESCOPE_NO_INDEX: "1" } });
  python.unpackArchive(await held[home + "cachescope.zip"].arrayBuffer(), "zip", { extractDir: "/package" });
  python.runPython("import sys; sys.path.insert(0, '/package')");
  Answers = python.runPython("from answers import Answers; Answers");
  postMessage({ kind: "ready" });
  // What every report needs is loaded while nothing is asked for.
  python.runPython("import cachescope.report.page.file");
}

async function read({ files, example }) {
  const { FS } = python;
  python.runPython("import os, shutil; os.chdir('/'); shutil.rmtree('/given', ignore_errors=True); os.mkdir('/given')");
  answers?.destroy();
  answers = undefined;
  for (const { path, file } of files) {
    const place = "/given/" + path;
    FS.mkdirTree(place.slice(0, place.lastIndexOf("/")));
    FS.writeFile(place, new Uint8Array(await file.arrayBuffer()));
    FS.utime(place, file.lastModified, file.lastModified);
  }
  const paths = example ? [`cachescope/samples/${example}`] : [...new Set(files.map(({ path }) => path.split("/")[0]))];
  answers = Answers(example ? "/package" : "/given", python.toPy(paths));
  postMessage({ kind: "report", html: answers.html(false), unread: answers.unread() });
}

// What is copied or kept: html, markdown or json.
const made = ({ form, redact }) => postMessage({ kind: "made", form, text: answers[form](redact) });
const asked = { load, read, made };

// What cachescope says of what it cannot read is one line, the last of a traceback.
function sentence(error) {
  const line = String(error.message ?? error).trim().split("\n").at(-1);
  return error.type?.endsWith("Error") ? line.replace(/^cachescope\.errors\.\w+: /, "") : line;
}

let before = Promise.resolve();
onmessage = ({ data }) => {
  before = before.then(() => asked[data.kind](data)).catch((error) => postMessage({ kind: "error", text: sentence(error), of: data.kind }));
};

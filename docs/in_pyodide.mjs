// Runs Python code in Pyodide, with folders of this machine at their own places: node in_pyodide.mjs PYODIDE CODE FOLDER…
const [home, code, ...folders] = process.argv.slice(2);
const { loadPyodide } = await import(`${home}/pyodide.mjs`);
const python = await loadPyodide({ indexURL: home, env: { HOME: "/home", CACHESCOPE_NO_INDEX: "1" } });
for (const folder of folders) {
  python.FS.mkdirTree(folder);
  python.mountNodeFS(folder, folder);
}
python.runPython(code);

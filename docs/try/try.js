// The page: hands what it is given to the worker, and shows what comes back.
const MOST_BYTES = 300e6;
const at = (id) => document.getElementById(id);
const home = new URL(".", location).href;
let worker, name = "", report = "";

function say(text, isError = false) {
  at("status").textContent = text;
  at("status").classList.toggle("error", isError);
}

// The report runs its own script in a frame of no origin, under the policy of this page as well as under its own.
function show(html) {
  URL.revokeObjectURL(report);
  report = URL.createObjectURL(new Blob([html], { type: "text/html" }));
  document.body.dataset.shown = "";
  at("result").hidden = false;
  open(location.hash.split("/")[1] ?? "");
  at("report").focus({ preventScroll: true });
}

function hide() {
  delete document.body.dataset.shown;
  at("result").hidden = true;
  at("report").src = "about:blank";
}

// A place in the report, such as a cause.
function open(id) {
  at("report").src = `${report}#${id}`;
}

function save(text, name, type) {
  const link = Object.assign(document.createElement("a"), { download: name });
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.click();
  URL.revokeObjectURL(link.href);
}

const forms = {
  markdown: (text) => navigator.clipboard.writeText(text).then(() => say("Copied."), () => say("The browser does not let this page copy.", true)),
  html: (text) => save(text, "cachescope.html", "text/html"),
  json: (text) => save(text, "cachescope.json", "application/json"),
};

const told = {
  progress: ({ text, part }) => { say(text); at("progress").value = part; },
  ready() { at("progress").hidden = true; say("Ready."); document.body.dataset.ready = ""; hashed(); },
  report({ html, unread }) { at("progress").hidden = true; show(html); say(unread || `Read: ${name}.`, Boolean(unread)); },
  made: ({ form, text }) => forms[form](text),
  error({ text, of }) { at("progress").hidden = true; say(of === "load" ? `This browser cannot run it: ${text}` : text, true); },
};

function ask(what, files, example) {
  const bytes = files.reduce((sum, { file }) => sum + file.size, 0);
  if (!example && !files.length) return say("There is no file in what was given.", true);
  if (bytes > MOST_BYTES) {
    const size = `${Math.round(bytes / 1e6).toLocaleString("en")} MB`;
    return say(`${what} has ${size}, more than a browser has memory for. Run: pip install cachescope; cachescope explain ${what}`, true);
  }
  name = what;
  hide();
  at("progress").hidden = false;
  at("progress").removeAttribute("value");
  say(`Reading ${what} …`);
  worker.postMessage({ kind: "read", files, example });
}

function given(files) {
  const tops = [...new Set(files.map(({ path }) => path.split("/")[0]))];
  ask(tops.length > 3 ? `${tops.length} files` : tops.join(", "), files);
}

// An address may end in an example, and in one of its causes: #tour/cause-…
function hashed() {
  const [example, place] = location.hash.slice(1).split("/");
  const button = document.querySelector(`[data-example="${CSS.escape(example)}"]`);
  if (button && example === name && report) open(place ?? "");
  else button?.click();
}

// What was dropped, with folders walked; their entries have to be taken before anything is waited for.
async function dropped(transfer) {
  const found = [];
  async function walk(entry, path) {
    if (entry.isFile) return found.push({ path, file: await new Promise((done, fail) => entry.file(done, fail)) });
    const reader = entry.createReader();
    for (let some; (some = await new Promise((done, fail) => reader.readEntries(done, fail))).length;)
      for (const one of some) await walk(one, `${path}/${one.name}`);
  }
  const entries = [...transfer.items].filter(({ kind }) => kind === "file").map((item) => item.webkitGetAsEntry());
  for (const entry of entries) await walk(entry, entry.name);
  return found;
}

for (const button of document.querySelectorAll("[data-opens]")) button.onclick = () => at(button.dataset.opens).click();
for (const button of document.querySelectorAll("[data-example]"))
  button.onclick = () => ask(button.dataset.example, [], button.dataset.example);
for (const input of [at("files"), at("folder")])
  input.onchange = () => {
    given([...input.files].map((file) => ({ path: file.webkitRelativePath || file.name, file })));
    input.value = "";
  };
at("read").onclick = () => ask("the text", at("text").value ? [{ path: "pasted.log", file: new File([at("text").value], "pasted.log") }] : []);
for (const form in forms) at(form).onclick = () => worker.postMessage({ kind: "made", form, redact: at("redact").checked });
addEventListener("hashchange", hashed);
document.ondragover = (event) => { event.preventDefault(); at("drop").classList.add("over"); };
document.ondragleave = () => at("drop").classList.remove("over");
document.ondrop = (event) => {
  event.preventDefault();
  at("drop").classList.remove("over");
  dropped(event.dataTransfer).then(given, () => say("The browser does not let this page read that.", true));
};

async function start() {
  // From the second visit on, the page needs no network; where that cannot be had, it is not waited for.
  const ready = navigator.serviceWorker?.register("cached.js").then(() => navigator.serviceWorker.ready).catch(() => {});
  await Promise.race([ready, new Promise((done) => setTimeout(done, 3000))]);
  const [source, files] = await Promise.all(["worker.js", "files.json"].map((file) => fetch(file).then((answer) => answer.text())));
  worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })), { type: "module" });
  worker.onmessage = ({ data }) => told[data.kind](data);
  worker.onerror = ({ message }) => told.error({ text: message ?? "its worker did not start", of: "load" });
  worker.postMessage({ kind: "load", home, files: JSON.parse(files) });
}
start().catch((error) => told.error({ text: error.message, of: "load" }));

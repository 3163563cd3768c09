// The page: hands what it is given to the worker, and shows what comes back.
const MOST_BYTES = 300e6;
const at = (id) => document.getElementById(id);
const home = new URL(".", location).href;
let worker, name = "";

function say(text, isError = false) {
  at("status").textContent = text;
  at("status").classList.toggle("error", isError);
}

// Markup from the worker has every text of a file escaped; the policy of the page lets no script of it run.
function nodes(html) {
  return new DOMParser().parseFromString(html, "text/html").body.childNodes;
}

function show(html) {
  at("result").hidden = false;
  at("answer").replaceChildren(...nodes(html));
  at("answer").focus({ preventScroll: true });
  open(location.hash.split("/")[1]);
}

// The evidence of a cause, which links lead to.
function open(id) {
  const evidence = id && at(id);
  if (!evidence) return;
  for (let one = evidence; one; one = one.parentElement.closest("details")) one.open = true;
  evidence.scrollIntoView();
}

function save(text) {
  const link = Object.assign(document.createElement("a"), { download: "cachescope.json" });
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.click();
  URL.revokeObjectURL(link.href);
}

const told = {
  progress: ({ text, part }) => { say(text); at("progress").value = part; },
  ready() { at("progress").hidden = true; say("Ready."); document.body.dataset.ready = ""; hashed(); },
  first: ({ html }) => { show(html); say(`${name}: what else there is is being worked out …`); },
  further: ({ html }) => at("answer").append(...nodes(html)),
  done() { at("progress").hidden = true; say(`Read: ${name}.`); },
  markdown: ({ text }) => navigator.clipboard.writeText(text).then(() => say("Copied."), () => say("The browser does not let this page copy.", true)),
  json: ({ text }) => save(text),
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
  at("result").hidden = true;
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
  const [first] = location.hash.slice(1).split("/");
  const button = document.querySelector(`[data-example="${CSS.escape(first)}"]`);
  if (button) button.click();
  else open(first);
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
for (const what of ["markdown", "json"]) at(what).onclick = () => worker.postMessage({ kind: what, redact: at("redact").checked });
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

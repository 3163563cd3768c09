// Keeps the page's own files, so that it works without a network. BUILD is their state: another one begins anew.
const NAME = "cachescope-BUILD";

oninstall = (event) => {
  skipWaiting();
  event.waitUntil(caches.open(NAME).then((cache) => cache.addAll(["./", "try.js", "try.css", "report.css", "worker.js", "files.json"])));
};
onactivate = (event) => {
  const older = (names) => names.filter((name) => name.startsWith("cachescope-") && name !== NAME);
  event.waitUntil(caches.keys().then((names) => Promise.all(older(names).map((name) => caches.delete(name)))).then(() => clients.claim()));
};
onfetch = (event) => event.respondWith(kept(event.request));

async function kept(request) {
  const cache = await caches.open(NAME);
  const had = await cache.match(request, { ignoreSearch: true });
  if (had) return had;
  const answer = await fetch(request);
  if (answer.ok) await cache.put(request, answer.clone());
  return answer;
}

// The focus goes into Why with what opened it, and back to it. An explorer remembers its last opener.
const isSeen = (node) => node?.isConnected && node.getClientRects().length > 0;

// Panes are made and shown by the kernel: wait for them, but take the focus from nothing that has it by now.
function focusWhenSeen(find, until = performance.now() + 5_000) {
  const node = find();
  const free = !isSeen(document.activeElement) || document.activeElement === document.body;
  if (isSeen(node) && free) node.focus();
  else if (performance.now() < until) requestAnimationFrame(() => focusWhenSeen(find, until));
}

function opened(el, find) {
  const home = el.closest(".cs-explorer");
  if (!home) return;
  home.cachescopeOpener = find;
  focusWhenSeen(() => home.querySelector(".cs-back"));
}

function cameBack(el) {
  const find = el.closest(".cs-explorer")?.cachescopeOpener;
  if (find) focusWhenSeen(find);
}

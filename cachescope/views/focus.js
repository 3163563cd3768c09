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

// A reading of a job that is followed makes its panes anew: what had the focus is found again in them.
function keepsFocus(el, find) {
  let home = null;
  const took = () => { home = el.closest(".cs-explorer"); };
  // A row that is removed loses the focus first: only later it is known whether the table is still there.
  const left = () => setTimeout(() => { if (isSeen(el) && !el.contains(document.activeElement)) home = null; });
  el.addEventListener("focusin", took);
  el.addEventListener("focusout", left);
  return () => {
    if (home) focusWhenSeen(() => find(home));
  };
}

// Puts text onto the clipboard, or into a file that the browser keeps.
async function toClipboard(text) {
  // Only a page from this machine or over HTTPS has the first.
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const place = document.createElement("textarea");
  place.value = text;
  const focused = document.activeElement;
  document.body.append(place);
  place.select();
  const done = document.execCommand("copy");
  place.remove();
  focused?.focus();
  if (!done) throw new Error("the browser does not allow it");
}

function toFile(text, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

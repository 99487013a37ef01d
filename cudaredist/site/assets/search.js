"use strict";

(() => {
  const SHOWN = 30;
  const TITLES = {
    product: "Products",
    package: "Packages",
    soname: "Sonames",
    gpu: "GPUs",
    release: "Releases",
    symbol: "Symbols",
    file: "Files",
  };
  const index = window.cudaredistIndex;
  const query = document.getElementById("query");
  const status = document.getElementById("status");
  const results = document.getElementById("results");
  const root = results.dataset.root;
  const entries = index.entries.map(([kind, text, link, detail]) => {
    const lower = text.toLowerCase();
    return { kind, text, lower, name: lower.slice(lower.lastIndexOf("/") + 1), link, detail };
  });

  // Lower is better; null is no match.
  function rank(entry, words) {
    if (!words.every((word) => entry.lower.includes(word))) return null;
    const all = words.join(" ");
    if (entry.lower === all || entry.name === all) return 0;
    if (entry.name.startsWith(all) || entry.lower.startsWith(all)) return 1;
    return entry.name.includes(words[0]) ? 2 : 3;
  }

  function item(entry) {
    const link = document.createElement("a");
    link.href = root + index.texts[entry.link];
    link.textContent = entry.text;
    const detail = document.createElement("small");
    detail.textContent = index.texts[entry.detail];
    const row = document.createElement("li");
    row.append(link, detail);
    return row;
  }

  function section(kind, found) {
    const title = document.createElement("h2");
    title.textContent = TITLES[kind];
    const list = document.createElement("ul");
    list.className = "results";
    list.append(...found.slice(0, SHOWN).map(({ entry }) => item(entry)));
    const parts = [title, list];
    if (found.length > SHOWN) {
      const more = document.createElement("p");
      more.className = "hint";
      more.textContent = `and ${found.length - SHOWN} more; add a word to see fewer`;
      parts.push(more);
    }
    return parts;
  }

  function show() {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    results.replaceChildren();
    if (!words.length) {
      status.textContent = "";
      return;
    }
    const groups = index.kinds.map(() => []);
    for (const entry of entries) {
      const place = rank(entry, words);
      if (place !== null) groups[entry.kind].push({ entry, place });
    }
    let count = 0;
    const found = groups.map((group, kind) => {
      group.sort((a, b) => a.place - b.place || a.entry.text.length - b.entry.text.length);
      count += group.length;
      return { kind, group, best: group.length ? group[0].place : 9 };
    });
    found.sort((a, b) => a.best - b.best || a.kind - b.kind);
    for (const { kind, group } of found) {
      if (group.length) results.append(...section(index.kinds[kind], group));
    }
    status.textContent = count === 1 ? "1 result" : `${count} results`;
  }

  query.value = new URLSearchParams(window.location.search).get("q") ?? "";
  query.addEventListener("input", show);
  query.form.addEventListener("submit", (event) => {
    event.preventDefault();
    show();
  });
  show();
  query.focus();
})();

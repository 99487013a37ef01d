"use strict";

(() => {
  const releases = window.cudaredistReleases;
  const choices = [...document.querySelectorAll("#choice select")];
  const target = document.getElementById("comparison");
  const MISSING = "–";

  const size = (bytes) => {
    if (bytes === undefined || bytes === null) return "unknown";
    const unit = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]].find(([amount]) => bytes >= amount);
    if (!unit) return `${bytes} B`;
    const value = bytes / unit[0];
    return `${value.toFixed(value < 99.95 ? 1 : 0)} ${unit[1]}`;
  };

  const count = (value) =>
    value === undefined || value === null ? "unknown" : value.toLocaleString("en");

  const add = (parent, name, text, options = {}) => {
    const element = Object.assign(document.createElement(name), options);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  };

  const union = (first, second) =>
    [...new Set([...Object.keys(first), ...Object.keys(second)])].sort();

  function table(title, heads, rows) {
    const section = add(target, "section");
    add(section, "h2", title);
    if (!rows.length) {
      add(section, "p", "No differences.");
      return;
    }
    const frame = add(section, "div", undefined, { className: "scroll", tabIndex: 0 });
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", title);
    const grid = add(frame, "table");
    const head = add(add(grid, "thead"), "tr");
    for (const text of heads) add(head, "th", text, { scope: "col" });
    const body = add(grid, "tbody");
    for (const [name, ...cells] of rows) {
      const row = add(body, "tr");
      const first = add(row, "th", undefined, { scope: "row" });
      if (name.href) add(first, "a", name.text, { href: name.href });
      else first.textContent = name;
      for (const text of cells) add(row, "td", text);
    }
  }

  function link(name) {
    return { text: name, href: `${target.dataset.root}packages/${encodeURIComponent(name)}/index.html` };
  }

  function differences(first, second) {
    const packages = [];
    const code = [];
    for (const name of union(first.packages, second.packages)) {
      const [old, now] = [first.packages[name], second.packages[name]];
      // The most common platform is the first.
      const place = Object.keys((old ?? now).places).find((name) => (now ?? old).places[name]);
      const [oldSize, oldSymbols, oldCode] = old?.places[place] ?? [];
      const [newSize, newSymbols, newCode] = now?.places[place] ?? [];
      const row = [
        old?.version ?? MISSING,
        now?.version ?? MISSING,
        place ?? "none in common",
        old ? size(oldSize) : MISSING,
        now ? size(newSize) : MISSING,
        old ? count(oldSymbols) : MISSING,
        now ? count(newSymbols) : MISSING,
      ];
      const isSame = old?.version === now?.version && oldSize === newSize && oldSymbols === newSymbols;
      if (!isSame) packages.push([link(name), ...row]);
      for (const architecture of union(oldCode ?? {}, newCode ?? {})) {
        const sizes = [oldCode?.[architecture], newCode?.[architecture]];
        if (sizes[0] !== sizes[1])
          code.push([link(name), architecture, ...sizes.map((one) => (one === undefined ? MISSING : size(one)))]);
      }
    }
    return [packages, code];
  }

  function show() {
    const asked = new URLSearchParams(location.search);
    for (const choice of choices)
      if (Object.hasOwn(releases, asked.get(choice.name))) choice.value = asked.get(choice.name);
    const labels = choices.map((choice) => choice.value);
    const [first, second] = labels.map((label) => releases[label]);
    target.replaceChildren();
    const [packages, code] = differences(first, second);
    if (Object.keys({ ...first.facts, ...second.facts }).length)
      table("Compilers, GPUs and drivers", ["Fact", ...labels], union(first.facts, second.facts)
        .filter((name) => first.facts[name] !== second.facts[name])
        .map((name) => [name, first.facts[name] ?? MISSING, second.facts[name] ?? MISSING]));
    table("Packages", ["Package", ...labels, "Platform", ...labels.map((label) => `Size in ${label}`),
      ...labels.map((label) => `Symbols in ${label}`)], packages);
    table("Device code", ["Package", "Architecture", ...labels], code);
  }

  for (const choice of choices) choice.addEventListener("change", () => choice.form.submit());
  show();
})();

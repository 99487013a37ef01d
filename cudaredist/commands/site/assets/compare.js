"use strict";

(() => {
  const releases = window.cudaredistReleases;
  const choices = [...document.querySelectorAll("#choice select")];
  const target = document.getElementById("comparison");
  const MISSING = "–";
  // Longer tables are folded.
  const SHOWN = 40;

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

  // Names are keys of maps, not of objects, which have a constructor and a prototype.
  const map = (pairs, convert) => new Map(pairs.map(([name, ...rest]) => [name, convert(...rest)]));

  const union = (first, second) =>
    [...new Set([...first.keys(), ...second.keys()])].sort((a, b) =>
      a.localeCompare(b, "en", { numeric: true }));

  const packagesOf = (release) =>
    map(release.packages, (version, places) => ({ version, places: map(places, (...facts) => facts) }));

  function table(title, heads, rows, name = "") {
    const section = add(target, "section");
    add(section, "h2", title);
    if (!rows.length) {
      add(section, "p", "No differences.");
      return;
    }
    let parent = section;
    if (rows.length > SHOWN) {
      parent = add(section, "details");
      add(parent, "summary", `${rows.length.toLocaleString("en")} rows`);
    }
    const frame = add(parent, "div", undefined, { className: "scroll", tabIndex: 0 });
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", title);
    const grid = add(frame, "table", undefined, { className: name });
    const head = add(add(grid, "thead"), "tr");
    for (const text of heads) add(head, "th", text, { scope: "col" });
    const body = add(grid, "tbody");
    for (const [about, ...cells] of rows) {
      const row = add(body, "tr");
      const first = add(row, "th", undefined, { scope: "row" });
      if (about.href) add(first, "a", about.text, { href: about.href });
      else first.textContent = about;
      for (const text of cells) add(row, "td", text);
    }
  }

  function link(name) {
    return { text: name, href: `${target.dataset.root}packages/${encodeURIComponent(name)}/index.html` };
  }

  // Of two lists, each cell has the names that the other list lacks.
  function factRows(first, second) {
    const [before, after] = [first, second].map(({ facts }) => map(facts, (value) => value));
    const words = (value, other) =>
      Array.isArray(value)
        ? value.filter((name) => !other?.includes(name)).join(", ") || MISSING
        : value ?? MISSING;
    return union(before, after).flatMap((name) => {
      const [old, now] = [before.get(name), after.get(name)];
      if (String(old) === String(now)) return [];
      const title = Array.isArray(old ?? now) ? `${name}, only in this release` : name;
      return [[title, words(old, now), words(now, old)]];
    });
  }

  function differences(first, second) {
    const [before, after] = [packagesOf(first), packagesOf(second)];
    const packages = [];
    const code = [];
    for (const name of union(before, after)) {
      const [old, now] = [before.get(name), after.get(name)];
      // The most common platform is the first.
      const place = [...(old ?? now).places.keys()].find((key) => (now ?? old).places.has(key));
      const [oldSize, oldSymbols, oldCode] = old?.places.get(place) ?? [];
      const [newSize, newSymbols, newCode] = now?.places.get(place) ?? [];
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
      const sizes = [oldCode, newCode].map((own) => new Map(Object.entries(own ?? {})));
      for (const architecture of union(...sizes)) {
        const texts = sizes.map((own) => (own.has(architecture) ? size(own.get(architecture)) : MISSING));
        if (texts[0] !== texts[1]) code.push([link(name), place, architecture, ...texts]);
      }
    }
    return [packages, code];
  }

  // The name of a library without its version.
  const stemOf = (soname) => soname.replace(/\.so(\..*)?$|_[0-9_]+(?=\.dll$)/, "");

  // Packages, libraries and machine code that the second release does not have.
  function breaks(first, second) {
    const [before, after] = [packagesOf(first), packagesOf(second)];
    const rows = [];
    for (const [name, old] of before) {
      const now = after.get(name);
      if (!now) {
        rows.push([link(name), "", "package gone", ""]);
        continue;
      }
      const place = [...old.places.keys()].find((key) => now.places.has(key));
      for (const gone of [...old.places.keys()].filter((key) => !now.places.has(key)))
        rows.push([link(name), gone, "platform gone", ""]);
      if (!place) continue;
      const [, , oldCode, oldNames = []] = old.places.get(place);
      const [, , newCode, newNames = []] = now.places.get(place);
      // A package without sonames may not have been examined.
      const gone = newNames.length ? oldNames.filter((soname) => !newNames.includes(soname)) : [];
      for (const soname of gone) {
        const owner = [...after].find(([, { places }]) => places.get(place)?.[3]?.includes(soname));
        const renamed = newNames.filter((one) => !oldNames.includes(one) && stemOf(one) === stemOf(soname));
        if (owner) rows.push([link(name), place, `${soname} moved`, owner[0]]);
        else rows.push([link(name), place, `${soname} gone`, renamed.join(", ")]);
      }
      const [oldArchitectures, newArchitectures] = [oldCode, newCode].map((code) => Object.keys(code ?? {}));
      const lost = oldArchitectures.filter((one) => one.startsWith("sm_") && !newArchitectures.includes(one));
      if (lost.length && newArchitectures.length)
        rows.push([link(name), place, "machine code gone", lost.join(", ")]);
    }
    return rows;
  }

  function show() {
    const asked = new URLSearchParams(location.search);
    for (const choice of choices)
      if (Object.hasOwn(releases, asked.get(choice.name))) choice.value = asked.get(choice.name);
    const labels = choices.map((choice) => choice.value);
    const [first, second] = labels.map((label) => releases[label]);
    target.replaceChildren();
    const [packages, code] = differences(first, second);
    table("May break", ["Package", "Platform", `Not in ${labels[1]}`, "Details"], breaks(first, second));
    const more = add(target, "p", undefined, { className: "hint" });
    more.append("Moved and missing files, symbols and headers: ");
    add(more, "code", `cudaredist diff ${target.dataset.redist}@${labels[0]} ${target.dataset.redist}@${labels[1]}`);
    if (first.facts.length + second.facts.length)
      table("Compilers, GPUs and drivers", ["Fact", ...labels], factRows(first, second));
    table("Packages", ["Package", ...labels, "Platform", ...labels.map((label) => `Size, ${label}`),
      ...labels.map((label) => `Symbols, ${label}`)], packages, "matrix");
    table("Device code", ["Package", "Platform", "Architecture", ...labels], code, "matrix");
  }

  for (const choice of choices) choice.addEventListener("change", () => choice.form.submit());
  show();
})();

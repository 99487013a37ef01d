"use strict";

(() => {
  const SHOWN = 30;
  // Fewer of each kind, so that the last kind is not far below the first.
  const SHOWN_OF_MANY = 8;
  const TITLES = {
    product: "Products",
    package: "Packages",
    soname: "Sonames",
    gpu: "GPUs",
    release: "Releases",
    driver: "Drivers",
    compiler: "Compilers",
    symbol: "Symbols",
    file: "Files",
  };
  const index = window.cudaredistIndex;
  const query = document.getElementById("query");
  const status = document.getElementById("status");
  const results = document.getElementById("results");
  const root = results.dataset.root;
  const withoutBrand = (name) => name.replace(/\b(nvidia|geforce|tesla) /g, "");
  // The detail is the answer, so the page is not opened at once.
  const ANSWERS = ["driver", "compiler"];
  const isVersion = /^\d+(\.\d+)+$/;
  const entries = index.entries.map(([kind, all, link, detail]) => {
    // Names after a tab are found, but not shown.
    const [text, ...hidden] = all.split("\t");
    const lower = [text, ...hidden].join(", ").toLowerCase();
    const isFile = index.kinds[kind] === "file";
    const names = isFile ? [lower, lower.slice(lower.lastIndexOf("/") + 1)] : lower.split(", ");
    if (index.kinds[kind] === "gpu") names.push(...names.map(withoutBrand));
    return { kind, text, lower, names, link, detail };
  });

  // Lower is better; null is no match.
  function rank(entry, typed) {
    const isGpu = index.kinds[entry.kind] === "gpu";
    const words = isGpu ? withoutBrand(typed.join(" ")).split(" ") : typed;
    if (!words.every((word) => entry.lower.includes(word))) return null;
    // A digit more is another version: 1.2 is neither 11.2 nor 1.20.
    if (isVersion.test(words.at(-1)) && !entry.names.some((name) => hasVersion(name, words.at(-1)))) return null;
    const all = words.join(" ");
    const some = (check) => entry.names.some(check);
    if (some((name) => name === all)) return 0;
    if (some((name) => name.startsWith(all))) return 1;
    if (some((name) => name.includes(` ${all}`))) return 2;
    return entry.names.at(-1).includes(words[0]) ? 3 : 4;
  }

  function hasVersion(name, version) {
    return name.split(/[^0-9.]+/).some((part) => `${part}.`.startsWith(`${version}.`));
  }

  // The text and the page of a result. A GPU is its capability, and its product if that was typed.
  function shownOf(entry, words) {
    const target = index.texts[entry.link];
    const detail = index.texts[entry.detail];
    if (index.kinds[entry.kind] !== "gpu") return [entry.text, target, detail];
    const [capability, , family, ...products] = entry.text.split(", ");
    const typed = withoutBrand(words.join(" "));
    const plain = products.map((name) => withoutBrand(name.toLowerCase()));
    const matching = plain.filter((name) => name.includes(typed));
    const product = products[plain.indexOf(matching.length === 1 ? matching[0] : typed)];
    if (!product) return [capability, target, `${detail} (${family ?? "variant"})`];
    return [capability, `${target}?gpu=${encodeURIComponent(product)}`, `${product}: ${detail.toLowerCase()}`];
  }

  // The best first: then the newest release, or the shortest name.
  function compare(a, b) {
    if (a.place !== b.place) return a.place - b.place;
    if (index.kinds[a.entry.kind] === "release") {
      return b.entry.text.localeCompare(a.entry.text, "en", { numeric: true });
    }
    return a.entry.text.length - b.entry.text.length;
  }

  // A piece of the sorted symbols is a script: browsers refuse to fetch other files for file://.
  const loading = new Map();

  function loadPiece(number) {
    if (!loading.has(number)) {
      loading.set(
        number,
        new Promise((resolve, reject) => {
          const script = document.createElement("script");
          script.src = `${root}assets/symbols/${number}.js`;
          script.onerror = () => {
            loading.delete(number);
            reject(new Error(script.src));
          };
          // Browsers load a truncated script, but do not run it.
          script.onload = () => {
            const piece = index.pieces[number];
            if (piece) resolve(unpacked(piece));
            else script.onerror();
          };
          document.head.append(script);
        }),
      );
    }
    return loading.get(number);
  }

  // Each name has the number of characters that it shares with the name before it.
  function unpacked(piece) {
    const rows = piece.names.split(" ");
    const symbols = [];
    let text = "";
    for (let at = 0; at < rows.length; at += 3) {
      text = text.slice(0, Number(rows[at])) + rows[at + 1];
      symbols.push({ text, lower: text.toLowerCase(), links: piece.packages[rows[at + 2]] });
    }
    return symbols;
  }

  // Counts the symbols that begin with a word, and returns the first ones to show.
  async function findSymbols(word) {
    const firsts = index.symbols.map(([first]) => first);
    const from = Math.max(0, firsts.findLastIndex((first) => first < word));
    const to = firsts.findLastIndex((first) => first < `${word}\uffff`);
    const matches = async (number) =>
      (await loadPiece(number)).filter((symbol) => symbol.lower.startsWith(word));
    const found = await matches(from);
    if (to <= from) return { found, count: found.length };
    // All names of the pieces between the first and the last one begin with the word.
    let count = found.length + (await matches(to)).length;
    for (let number = from + 1; number <= to; number += 1) {
      if (number < to) count += index.symbols[number][1];
      if (found.length < SHOWN) found.push(...(await matches(number)));
    }
    return { found, count };
  }

  // Returns the prefix for the search of symbols, without a version such as `@@libcublasLt.so.12`.
  function symbolOf(words) {
    if (words.length !== 1 || !index.symbols.length) return "";
    return words[0].startsWith("?") ? words[0] : words[0].replace(/[@*].*$/, "");
  }

  function item(text, target, about) {
    const link = document.createElement("a");
    link.href = root + target;
    link.textContent = text;
    const detail = document.createElement("small");
    detail.textContent = about;
    const row = document.createElement("li");
    row.append(link, detail);
    return row;
  }

  // Returns the results to show of each kind.
  function shownOfKind(kinds) {
    return kinds > 2 ? SHOWN_OF_MANY : SHOWN;
  }

  function section(kind, items, count) {
    const title = document.createElement("h2");
    title.textContent = TITLES[kind];
    const list = document.createElement("ul");
    list.className = "results";
    list.append(...items.flat());
    const parts = [title, list];
    if (count > items.length) {
      const more = document.createElement("p");
      more.className = "hint";
      const advice = kind === "symbol" ? "type more of the name" : "add a word";
      more.textContent = `and ${(count - items.length).toLocaleString("en")} more; ${advice} to see fewer`;
      parts.push(more);
    }
    return parts;
  }

  function sectionOfSymbols({ found, count }, shown) {
    const items = found
      .slice(0, shown)
      .map(({ text, links }) => links.map(([target, about]) => item(text, target, about)));
    return section("symbol", items, count);
  }

  function sectionsOfEntries(words) {
    const groups = index.kinds.map(() => []);
    for (const entry of entries) {
      const place = rank(entry, words);
      if (place !== null) groups[entry.kind].push({ entry, place });
    }
    const shown = shownOfKind(groups.filter((group) => group.length).length);
    return groups.flatMap((group, kind) => {
      if (!group.length) return [];
      group.sort(compare);
      const items = group
        .slice(0, shown)
        .map(({ entry }) => item(...shownOf(entry, words)));
      const parts = section(index.kinds[kind], items, group.length);
      const [, page] = shownOf(group[0].entry, words);
      const only = ANSWERS.includes(index.kinds[kind]) ? "" : page;
      return [{ kind, best: group[0].place, count: group.length, parts, only }];
    });
  }

  function render(sections, hint = "") {
    sections.sort((a, b) => a.best - b.best || a.kind - b.kind);
    const count = sections.reduce((sum, { count }) => sum + count, 0);
    status.textContent = `${count.toLocaleString("en")} result${count === 1 ? "" : "s"}${hint}`;
    // Sections that stay are not moved, so a link in them keeps the focus.
    const parts = sections.flatMap(({ parts }) => parts);
    for (const old of [...results.children]) if (!parts.includes(old)) old.remove();
    parts.forEach((part, at) => {
      if (results.children[at] !== part) results.insertBefore(part, results.children[at] ?? null);
    });
  }

  // Opens the only result of a search that another page asked for.
  let opensOnly = Boolean(new URLSearchParams(window.location.search).get("q"));

  function openOnly(sections) {
    const [first] = sections;
    const isAlone = opensOnly && sections.length === 1 && first.count === 1 && first.only;
    opensOnly = false;
    if (!isAlone) return;
    results.dataset.opens = first.only;
    window.location.replace(root + first.only);
  }

  // Without a result for a version, the results for its line.
  function sectionsOf(words) {
    const sections = sectionsOfEntries(words);
    const version = words.at(-1);
    if (sections.length || !isVersion.test(version)) return { sections, hint: "" };
    // The first three digits of a driver are its branch.
    const isDriver = /^\d{3}\./.test(version);
    const line = isDriver ? version.slice(0, 3) : version.slice(0, version.lastIndexOf("."));
    const others =
      isDriver || isVersion.test(line) ? sectionsOfEntries([...words.slice(0, -1), line]) : [];
    const hint = others.length ? `: ${version} is not in the data, these are for ${line}` : "";
    return { sections: others, hint };
  }

  let latest = "";

  async function show() {
    latest = query.value;
    const asked = latest;
    const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) {
      results.replaceChildren();
      status.textContent = "";
      return;
    }
    const { sections, hint } = sectionsOf(words);
    const word = symbolOf(words);
    if (!word) {
      render(sections, hint);
      openOnly(hint ? [] : sections);
      return;
    }
    render(sections, `${hint}, searching symbols`);
    try {
      const symbols = await findSymbols(word);
      if (asked !== latest) return;
      if (symbols.count) {
        const best = symbols.found[0].lower === word ? 0 : 1;
        const kind = index.kinds.indexOf("symbol");
        const parts = sectionOfSymbols(symbols, shownOfKind(sections.length));
        sections.push({ kind, best, count: symbols.count, parts });
      }
      render(sections, hint);
      openOnly(hint ? [] : sections);
    } catch {
      if (asked === latest) render(sections, "; symbols could not be loaded");
    }
  }

  // The arrow keys move between the field and the results.
  document.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const stops = [query, ...results.querySelectorAll("a")];
    const at = stops.indexOf(document.activeElement);
    if (!step || at < 0) return;
    event.preventDefault();
    stops[Math.min(Math.max(at + step, 0), stops.length - 1)].focus();
  });

  query.value = new URLSearchParams(window.location.search).get("q") ?? "";
  query.addEventListener("input", show);
  query.form.addEventListener("submit", (event) => {
    event.preventDefault();
    show();
  });
  show();
  query.focus();
})();

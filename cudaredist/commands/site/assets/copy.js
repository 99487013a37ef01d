"use strict";

for (const cell of document.querySelectorAll(".hash")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy SHA-256 of ${cell.dataset.of}`);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(cell.firstChild.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(cell.firstChild);
      button.textContent = document.execCommand("copy") ? "Copied" : "Selected";
    }
  });
  cell.append(" ", button);
}

"use strict";

// The search names the product that it found, and the page then speaks of it.
(() => {
  const asked = new URLSearchParams(window.location.search).get("gpu");
  const names = [...document.querySelectorAll("#products > span")].map((one) => one.textContent);
  if (!asked || !names.includes(asked)) return;
  const title = document.getElementById("title");
  title.textContent = `${asked}: ${title.textContent.toLowerCase()}`;
  document.title = `${asked} · ${document.title}`;
  const product = document.getElementById("product");
  if (product) product.textContent = asked;
})();

// One video: mark a part of it and search with that.
import { QueryPanel } from "./query.js";
import { searchAddress } from "./addresses.js";

const place = document.getElementById("query");
if (place !== null) {
  const panel = new QueryPanel(JSON.parse(place.dataset.source));
  place.append(panel.element);
  const go = () => (location.href = searchAddress(panel.describe()));
  document.getElementById("search").addEventListener("click", go);
  document.addEventListener("keydown", (event) => {
    if (event.key === "s" && !event.target.closest("input, select, textarea") && !event.ctrlKey && !event.metaKey) go();
  });
}

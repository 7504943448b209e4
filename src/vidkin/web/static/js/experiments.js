// Experiments: the chosen runs side by side, as the server shows them; running ones are followed.
import { byId, morph, onSubmit, refresher } from "./base.js";

const form = byId("choice");
const refresh = refresher((page) => {
  for (const id of ["runs", "compared"]) morph(byId(id), page.getElementById(id));
});

async function show() {
  const address = `/experiments?${new URLSearchParams(new FormData(form))}`;
  history.replaceState(null, "", address);
  await refresh(address);
}

async function follow() {
  await show();
  setTimeout(follow, byId("runs").querySelector(".good") ? 2000 : 15000);
}

if (form !== null) {
  document.addEventListener("change", show);
  onSubmit(form, show);
  follow();
}

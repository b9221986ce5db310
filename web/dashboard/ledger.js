// Below the score: what the cache, the memory, constraints and errors come to.

import {h} from "../base/dom.js";
import {bytes, clock, short} from "./format.js";

const LOOKUPS = [["Found all there was", "lookups_found_all"], ["Seen for the first time", "lookups_first_sight"],
                 ["Had been evicted", "lookups_evicted"], ["Somebody else's", "lookups_salt"],
                 ["Another picture", "lookups_media"], ["Beyond the window", "lookups_window"],
                 ["No state there", "lookups_state"]];
const MEMORY = [["Weights", "weights"], ["Cache", "cache"], ["Working", "working"], ["Requests", "requests"],
                ["Pictures", "pictures"], ["Constraints", "constraints"]];
const DONE = [["Ended by themselves", "ended_stop"], ["Ended at their length", "ended_length"],
              ["Cancelled", "ended_cancelled"], ["Failed", "ended_error"], ["Set aside", "set_aside"],
              ["Constrained tokens", "constrained_tokens"], ["Masks computed", "masks_computed"],
              ["Constraints compiled", "constraints_compiled"], ["Pictures encoded", "pictures_encoded"],
              ["Pictures found", "pictures_found"]];
const ERRORS = 12;

// Names and numbers, each with a bar that says how much of all it is.
function bars(element, title, names) {
    const rows = names.map((name) => ({bar: h("span", {class: "bar"}), value: h("td"), name}));
    element.append(h("section", {class: "ledger"}, h("h3", {}, title), h("table", {}, h("tbody", {}, rows.map(
        ({bar, value, name}) => h("tr", {}, h("th", {scope: "row"}, name, bar), value))))));
    return (values, write, whole = values.reduce((sum, v) => sum + (v ?? 0), 0)) => rows.forEach(({bar, value}, i) => {
        value.textContent = write(values[i]);
        bar.style.width = `${whole > 0 ? Math.min(100 * (values[i] ?? 0) / whole, 100) : 0}%`;
    });
}

export function makeLedger(element, store, view) {
    const lookups = bars(element, "Lookups of prompts", LOOKUPS.map(([name]) => name));
    const memory = bars(element, "Memory, as it is divided", MEMORY.map(([name]) => name));
    const kept = bars(element, "Cache", ["Pages in use", "Pages known", "States in use", "States known", "Features"]);
    const done = bars(element, "Answers", DONE.map(([name]) => name));
    const list = h("ul"), none = h("p", {class: "note"}, "None.");
    element.append(h("section", {class: "ledger wide"}, h("h3", {}, "Errors"), list, none));
    let shown = "";

    return () => {
        const end = Math.min(view.end, store.now), head = store.head, row = store.rows[store.rowAfter(end) - 1];
        const value = (name) => store.value(row, name) ?? 0;
        lookups(LOOKUPS.map(([, name]) => store.sum(name, view.begin, end)), short);
        memory(MEMORY.map(([, name]) => head.memory?.[name]), bytes, head.memory?.budget);
        const parts = [[value("pages_held"), head.pages], [value("pages_known"), head.pages],
                       [value("states_held"), head.states], [value("states_known"), head.states],
                       [value("features_bytes"), head.features]];
        const written = (v) => `${(100 * v).toFixed(v < 0.1 && v > 0 ? 1 : 0)} %`;
        kept(parts.map(([part, all]) => all ? part / all : 0), written, 1);
        done(DONE.map(([, name]) => store.sum(name, view.begin, end)), short, Infinity);
        const errors = store.errors.slice(0, ERRORS), stamp = `${errors[0]?.at}/${errors.length}`;
        if (stamp === shown)
            return;
        shown = stamp;
        none.hidden = errors.length > 0;
        list.replaceChildren(...errors.map((error) => h("li", {}, h("time", {}, clock(store.wall(error.at))), " ",
            h("b", {}, String(error.status)), " ", error.text, " ", h("code", {}, error.id))));
    };
}

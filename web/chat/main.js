// The chat page: puts its parts together. session.js has the state, the other modules show it.

import {callJson, reconnected, Refusal} from "../base/api.js";
import {askForKey} from "../base/key.js";
import {byId, icon} from "../base/dom.js";
import {startTheme} from "../base/theme.js";
import {startComposer} from "./composer.js";
import {startConnection} from "./connection.js";
import {startGauge} from "./gauge.js";
import {startKeeping} from "./keeping.js";
import {startNotices} from "./notices.js";
import {startDrawers, toggleDrawer} from "./drawers.js";
import {startPanel} from "./panel.js";
import {followModels, readModels} from "./models.js";
import {openPicker} from "./picker.js";
import {on, session, start, tell} from "./session.js";
import {beginNew, startSidebar} from "./sidebar.js";
import {startTranscript} from "./transcript.js";
import {explained, faultOf} from "./words.js";

async function findModels() {
    for (let wait = 500; ; wait = Math.min(2 * wait, 8000)) {
        try {
            await readModels();
            session.limits = await callJson("web/limits").catch(() => null);
            tell("models");
            followModels();
            return;
        } catch (error) {
            if (error instanceof Refusal && error.status < 500) {
                const {text} = explained(faultOf(error), error.message);
                tell("notice", {text, actions: [["Try again", findModels]]});
                return;
            }
            if (!(error instanceof Refusal)) await reconnected();
        }
        await new Promise((resolve) => setTimeout(resolve, wait));
    }
}

function startTitle() {
    const show = () => {
        const title = session.conversation.title;
        byId("title").textContent = title || "New conversation";
        document.title = title ? `${title} – motet` : "motet";
    };
    on("conversation", show);
    on("title", show);
}

function startKeys() {
    document.addEventListener("keydown", (event) => {
        if ((event.ctrlKey || event.metaKey) && event.key === "k") {
            event.preventDefault();
            if (byId("sidebar").hidden) toggleDrawer("sidebar");
            byId("search").focus();
        } else if (event.altKey && event.key === "n") {
            event.preventDefault();
            beginNew();
        }
    });
}

for (const [id, name] of [
    ["send", "send"],
    ["stop", "stop"],
    ["attach", "clip"],
    ["sketch", "edit"],
    ["to-end", "down"],
    ["dashboard", "chart"],
    ["models", "cpu"],
])
    byId(id).prepend(icon(name));
startTheme();
startNotices();
startConnection();
on("key", async (then) => (await askForKey("Ask whoever runs it for one.")) && then());
startDrawers();
startTitle();
startTranscript();
startComposer();
startPanel();
startSidebar();
startKeeping();
startGauge();
byId("models").addEventListener("click", openPicker);
startKeys();
await start();
tell("list");
findModels();
